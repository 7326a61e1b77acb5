"""The hint after an `up` that failed at a plugin: edit the project file, if it names one that is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.engine.boundary import RunResult
from clusterctl.engine.stack import Stack
from clusterctl.lifecycle.failed_up import plugin_hint

PLUGIN = "/srv/rehearsal/plugin"


@pytest.mark.parametrize(
    ("stderr", "helps"),
    [
        (f"error: parsing plugin options for 'aws': no folder at path '{PLUGIN}'", True),
        (f"error: failed to load plugin {PLUGIN}/pulumi-resource-aws: loading PulumiPlugin.yaml: no such file", True),
        (f"error: Detected that {PLUGIN}/pulumi-resource-aws exited prematurely.", False),
        ("error: failed to load plugin /elsewhere/pulumi-resource-aws", False),
    ],
    ids=["no folder", "no program", "the plugin was killed", "another folder"],
)
def test_the_project_file_is_named_only_where_the_plugin_that_it_names_is_missing(stderr: str, *, helps: bool) -> None:
    stack = Stack(
        directory=Path("stacks/x"),
        project="x",
        name="dev",
        is_rehearsal_project=True,
        plugin_folders=(PLUGIN,),
    )
    result = RunResult(succeeded=False, interrupted=False, changes={}, refusals=(), log=Path("/x.log"), stderr=stderr)
    assert plugin_hint(stack, result) == ("${EDITOR:-nano} stacks/x/Pulumi.yaml" if helps else None)
