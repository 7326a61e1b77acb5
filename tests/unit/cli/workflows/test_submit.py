"""What `workflow submit` looks at before anything is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any  # JSON

import pytest
from clusterctl.jobs.node_answers import Answer
from clusterctl.workflows.buckets import BucketMount
from clusterctl.workflows.submit import node_storage
from clusterctl_infra.errors import ConfigError, NotReached
from clusterctl_infra.outputs import InventoryNode

from tests.unit.cli.workflows.workflow_files import inventory


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
