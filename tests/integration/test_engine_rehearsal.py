"""A rehearsal reaches neither the person's account nor a plugin that would; a real stack can be rehearsed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.recorded_stack import make_it_a_real_stack
from tests.integration.rehearsed import ROOT, Rehearsed, rehearsed


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Rehearsed]:
    """A stack of two nodes whose machines are only written down."""
    with rehearsed(tmp_path, machines="none", nodes=2) as cluster:
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


def test_a_rehearsal_stack_reaches_no_plugin_on_path(recorded: Rehearsed, trap: Path) -> None:
    done = recorded.run("up", str(recorded.folder), env=with_real_credentials(recorded, trap))
    assert done.exit_code == 0, done.text
    assert "rehearsed" in done.stderr
    assert len(recorded.instance_ids()) == 2


def test_a_real_stack_is_rehearsed_without_reaching_aws(recorded: Rehearsed, trap: Path) -> None:
    make_it_a_real_stack(recorded)
    env = with_real_credentials(recorded, trap)
    done = recorded.run("up", str(recorded.folder), "--rehearse", env=env)
    assert done.exit_code == 0, done.text
    assert len(recorded.instance_ids()) == 2
    assert not (recorded.folder / "Pulumi.dev.yaml").exists(), "the real stack's own config was touched"
    assert not list(Path(recorded.env["PULUMI_BACKEND_URL"].removeprefix("file://")).rglob("dev.json"))
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
