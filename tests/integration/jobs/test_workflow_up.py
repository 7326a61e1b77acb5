"""`workflow submit --up`: a cluster that the workflow's own command brings up, as process machines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.rehearsed import Rehearsed, rehearsed

WORKFLOW = """\
workflow:
  name: alone
  resources: {default: {gpu: {{ gpus }}}}
  tasks:
  - {name: only, image: any, command: [sh, -c], args: ["echo $CLUSTERCTL_CLUSTER; exit {{ code }}"]}
default-values: {gpus: 8, code: 0}
"""


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Rehearsed]:
    """A stack that is not up."""
    with rehearsed(tmp_path, machines="process", nodes=1) as cluster:
        (cluster.folder / "w.yaml").write_text(WORKFLOW)
        yield cluster


def test_a_workflow_brings_its_cluster_up_and_says_what_goes_on_afterwards(stack: Rehearsed) -> None:
    argv = ("workflow", "submit", "w.yaml", "--on-host", "--up", str(stack.folder))
    refused = stack.run(*argv, "--set", "gpus=9")
    assert refused.exit_code == 2
    assert "gpu: 9 is more than the 8 of a node" in refused.stderr
    assert stack.resources() == []

    done = stack.run(*argv)
    assert done.exit_code == 0, done.text
    assert "alone-" in done.stderr
    assert f"{stack.name}@rehearsal: 1 node still running, $" in done.stderr
    assert f"next: clusterctl down --cluster {stack.name}@rehearsal" in done.stderr

    failed = stack.run(*argv, "--json", "--set", "code=3")
    assert failed.exit_code == 3, failed.text
    assert json.loads(failed.stdout)["state"] == "failed"
    assert "still running" in failed.stderr
    stack.down()
