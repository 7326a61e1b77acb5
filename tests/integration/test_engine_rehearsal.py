"""A rehearsal reaches neither the person's account nor a plugin that would; a real stack can be rehearsed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any  # parsed JSON

import pytest

from tests.integration.recorded_stack import make_it_a_real_stack
from tests.integration.rehearsed import CLUSTERCTL, ROOT, Rehearsed, rehearsed


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Rehearsed]:
    """A stack of two nodes whose machines are only written down."""
    with rehearsed(tmp_path, machines="none", nodes=2) as cluster:
        del cluster.env["PULUMI_STACK"]  # what plain pulumi means is what `up` selected
        yield cluster


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[Path]:
    """A folder with a `pulumi-resource-aws` that writes down that it was run."""
    folder = tmp_path / "trap"
    folder.mkdir()
    plugin = folder / "pulumi-resource-aws"
    plugin.write_text(f"#!/bin/sh\nenv >> {folder}/was-run\nexit 1\n")
    plugin.chmod(0o755)
    yield folder
    assert not (folder / "was-run").exists(), "the plugin on PATH was run"


def with_real_credentials(cluster: Rehearsed, trap: Path) -> dict[str, str]:
    return {
        "PATH": f"{cluster.env['PATH'].split(os.pathsep)[0]}{os.pathsep}{trap}{os.pathsep}{cluster.env['PATH']}",
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AWS_PROFILE": "production",
        "AWS_REGION": "eu-central-1",
    }


def plain_pulumi(cluster: Rehearsed, *words: str) -> Any:
    """What pulumi prints as JSON to a person in the stack's folder who names no stack."""
    argv = [str(Path(CLUSTERCTL).with_name("pulumi")), *words, "--non-interactive"]
    done = subprocess.run(
        argv, cwd=cluster.folder, env=cluster.env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_rehearsal_stack_reaches_no_plugin_on_path(recorded: Rehearsed, trap: Path) -> None:
    done = recorded.run("up", str(recorded.folder), env=with_real_credentials(recorded, trap))
    assert done.exit_code == 0, done.text
    assert "rehearsed" in done.stderr
    assert len(recorded.instance_ids()) == 2
    steps = plain_pulumi(recorded, "preview", "--json")["changeSummary"]
    assert list(steps) == ["same"], "plain pulumi means the same stack, and would change nothing"


def test_a_real_stack_is_rehearsed_without_reaching_aws(recorded: Rehearsed, trap: Path) -> None:
    make_it_a_real_stack(recorded)
    env = with_real_credentials(recorded, trap)
    done = recorded.run("up", str(recorded.folder), "--rehearse", env=env)
    assert done.exit_code == 0, done.text
    assert len(recorded.instance_ids()) == 2
    assert "clusterctl:" not in (recorded.folder / "Pulumi.dev.yaml").read_text(), "the real stack got our config"
    assert "resources" not in plain_pulumi(recorded, "stack", "export")["deployment"], "plain pulumi has a stack, empty"
    state = recorded.home / "rehearsal" / "state"
    assert "AKIAIOSFODNN7EXAMPLE" not in next(iter(state.rglob("dev.json"))).read_text()
    done = recorded.run("down", str(recorded.folder), "--rehearse", env=env)
    assert done.exit_code == 0, done.text
    assert recorded.resources() == []


def test_without_the_stand_ins_proof_nothing_is_made(recorded: Rehearsed, tmp_path: Path) -> None:
    """Somebody's own build of a provider, named by path, is no stand-in: it writes no proof."""
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "pulumi-resource-aws").write_text(
        f'#!/bin/sh\nexec env CLUSTERCTL_REHEARSAL_NONCE=another "{ROOT}/rehearsal/plugin/pulumi-resource-aws" "$@"\n'
    )
    (folder / "pulumi-resource-aws").chmod(0o755)
    project = recorded.folder / "Pulumi.yaml"
    project.write_text(project.read_text().replace(str(ROOT / "rehearsal" / "plugin"), str(folder)))
    done = recorded.run("up", str(recorded.folder))
    assert done.exit_code == 1, done.text
    assert "not the stand-in" in done.stderr
    assert recorded.resources() == []
