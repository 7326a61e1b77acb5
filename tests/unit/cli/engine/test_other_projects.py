"""The project under whose name Pulumi has a cluster, where Pulumi.yaml has another one by now."""

from __future__ import annotations

import json
from pathlib import Path

from clusterctl.engine.other_projects import project_that_holds
from clusterctl.engine.stack import Stack
from clusterctl_infra.names import IDENTITY_TYPE

ID = "0123456789ab"
STACK = Stack(directory=Path("/stacks/train"), project="renamed", name="dev", is_rehearsal_project=False)


def write(root: Path, project: str, text: str, *, stack: str = "dev") -> None:
    file = root / ".pulumi" / "stacks" / project / f"{stack}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def state(cluster_id: str) -> str:
    row = {"type": IDENTITY_TYPE, "urn": "u", "custom": True, "outputs": {"cluster_id": cluster_id}}
    return json.dumps({"checkpoint": {"latest": {"resources": [row]}}})


def test_the_project_that_holds_the_cluster_is_found(tmp_path: Path) -> None:
    write(tmp_path, "another", state("f" * 12))
    write(tmp_path, "broken", "{")
    write(tmp_path, "older", state(ID))
    assert project_that_holds(f"file://{tmp_path}", STACK, cluster_id=ID) == "older"


def test_a_cluster_that_no_other_project_holds_is_none(tmp_path: Path) -> None:
    write(tmp_path, "renamed", state(ID))
    write(tmp_path, "older", state(ID), stack="prod")
    assert project_that_holds(f"file://{tmp_path}", STACK, cluster_id=ID) is None
    assert project_that_holds("s3://bucket", STACK, cluster_id=ID) is None
