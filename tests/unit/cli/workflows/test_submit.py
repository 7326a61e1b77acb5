"""What `workflow submit` looks at before anything is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any  # JSON

import pytest
from clusterctl.jobs.node_answers import Answer
from clusterctl.workflows.buckets import BucketMount
from clusterctl.workflows.submit import node_storage
from clusterctl.workflows.submit_checks import refuse_odd_tasks, registry_logins, workflow_bucket
from clusterctl_infra.errors import ConfigError, NotReached, UsageError
from clusterctl_infra.outputs import InventoryNode

from tests.inventories import make_inventory
from tests.unit.cli.workflows.workflow_files import inventory, read


class ProbedNodes:
    """Nodes that say this when they are asked for their facts, or cannot be reached."""

    def __init__(self, words: Mapping[str, Any] | None) -> None:
        self.inventory = inventory(2)
        self._words = words

    def ask(self, nodes: Sequence[InventoryNode], verb: str, *arguments: str) -> dict[int, Answer]:
        assert (verb, [node.slot for node in nodes]) == ("facts", [0])
        error = "not reached: timeout" if self._words is None else None
        return {0: Answer(node=nodes[0], words=self._words or {}, error=error, is_reached=error is None)}


@pytest.mark.parametrize("path", ["/shared", None])
def test_storage_is_shared_where_the_lowest_slot_has_it(path: str | None) -> None:
    for engine, has_containers in (("", False), ("podman", True)):
        nodes = ProbedNodes({"shared": path, "engine": engine})
        found = node_storage(nodes, has_containers=has_containers)  # type: ignore[arg-type]  # its only method
        assert (found.share, found.buckets) == (path, ())


def test_buckets_are_those_that_the_lowest_slot_has_mounted() -> None:
    mounts = [
        {"path": "/shared", "kind": "efs", "source": "fs-1", "writable": True},
        {"path": "/data", "kind": "s3", "source": "words/in/", "writable": False},
    ]
    nodes = ProbedNodes({"shared": "/shared", "engine": "", "mounts": mounts})
    found = node_storage(nodes, has_containers=False)  # type: ignore[arg-type]  # its only method
    assert found.buckets == (BucketMount(path="/data", bucket="words", prefix="in/", is_writable=False),)


def test_images_need_something_that_runs_them() -> None:
    nodes = ProbedNodes({"shared": None, "engine": ""})
    with pytest.raises(ConfigError, match=r"Node 0 \(train-0\) has neither docker nor podman") as refused:
        node_storage(nodes, has_containers=True)  # type: ignore[arg-type]  # its only method
    assert refused.value.hint == "clusterctl workflow submit FILE --on-host"


def test_a_node_that_is_not_reached_starts_nothing() -> None:
    with pytest.raises(NotReached, match=r"the workflow was not started: Node 0 \(train-0\): not reached"):
        node_storage(ProbedNodes(None), has_containers=False)  # type: ignore[arg-type]  # its only method


IMAGES = """\
workflow:
  name: w
  tasks:
  - {name: a, image: "nvcr.io/nvidia/pytorch:25.06-py3", command: [a]}
  - {name: b, image: "{{image}}", command: [b], volumeMounts: [/opt, "/data:/in"]}
default-values: {image: "nvcr.io/own:1"}
"""
ENVIRON = {"NGC": "$oauthtoken:key-1", "HUB": "ada:pass", "BROKEN": "secret-without-a-colon"}


def test_a_registrys_password_is_for_all_images_of_it() -> None:
    alike, mixed = read(IMAGES), read(IMAGES, "image=python:3.12")
    assert registry_logins(alike, (), ENVIRON) == {}
    assert registry_logins(alike, ("NGC",), ENVIRON) == {"nvcr.io": "$oauthtoken:key-1"}
    given = ("nvcr.io=NGC", "docker.io=HUB")
    assert registry_logins(mixed, given, ENVIRON) == {"nvcr.io": "$oauthtoken:key-1", "docker.io": "ada:pass"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("NGC",), "--registry-secret NGC: the images come from docker.io, nvcr.io: say which one it is for"),
        (("nvcr.i=NGC",), "no image comes from 'nvcr.i' (did you mean nvcr.io?)"),
        (("nvcr.io=NGC", "nvcr.io=HUB"), "--registry-secret nvcr.io=HUB: nvcr.io has a secret already"),
        (("nvcr.io=GONE",), "--registry-secret GONE: not in this computer's environment"),
        (("nvcr.io=BROKEN",), "--registry-secret BROKEN: its value is not USER:PASSWORD"),
    ],
)
def test_a_registrys_password_that_cannot_be_meant_is_refused_without_its_value(
    given: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UsageError) as refused:
        registry_logins(read(IMAGES, "image=python:3.12"), given, ENVIRON)
    assert message in refused.value.message
    assert "secret-without" not in str(refused.value)


def test_on_the_node_itself_a_folder_cannot_appear_elsewhere() -> None:
    refuse_odd_tasks(read(IMAGES), is_on_host=False)
    with pytest.raises(ConfigError, match="each at its own place; nothing was started") as refused:
        refuse_odd_tasks(read(IMAGES), is_on_host=True)
    assert refused.value.problems == ("  task b: /data:/in",)


def test_workflow_storage_is_a_folder_of_the_mount_that_has_it() -> None:
    mounts = (BucketMount(path="/models", bucket="models", prefix="team/", is_writable=True),)
    assert workflow_bucket(make_inventory(), mounts) is None
    known = make_inventory(workflow_storage="s3://models/team/workflows")
    assert workflow_bucket(known, mounts) == "/models/workflows"
    with pytest.raises(ConfigError, match="train: its nodes do not mount workflow_storage s3://models/team"):
        workflow_bucket(known, ())
