"""When ranks are ordered, what comes of AWS's answer, and what is said about it."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.engine.stack import Stack
from clusterctl.engine.stack_config import with_values
from clusterctl.lifecycle.intent import Intent, read_intent
from clusterctl.lifecycle.rank_order import is_wanted, order_of, refuse_reorder
from clusterctl_infra.errors import UsageError

CLUSTER = """name: train
region: us-west-2
nodes: 4
instance_type: p5.48xlarge
access: {mode: private}
"""
SLOTS = (0, 1, 2, 3)
LEFT, RIGHT = ("hall", "left"), ("hall", "right")


def intent_of(folder: Path, **config: str) -> Intent:
    (folder / "cluster.yaml").write_text(CLUSTER)
    stack = Stack(directory=folder, project="train", name="dev", is_rehearsal_project=True)
    return read_intent(stack, with_values("", dict(config)), nodes=None)


@pytest.mark.parametrize(
    ("config", "is_asked", "is_ordered"),
    [
        ({}, False, False),
        ({"ranks": "topology"}, False, True),
        ({"ranks": "topology", "slot-ranks": "[0,1,2,3]"}, False, False),
        ({"ranks": "topology", "slot-ranks": "[0,1,2,3]"}, True, True),
    ],
)
def test_ranks_are_ordered_once_and_when_a_person_asks(
    tmp_path: Path, config: dict[str, str], is_asked: bool, is_ordered: bool
) -> None:
    assert is_wanted(intent_of(tmp_path, **config), is_asked=is_asked) is is_ordered


def test_reordering_ranks_is_refused_where_a_rank_is_its_slots_number(tmp_path: Path) -> None:
    refuse_reorder(intent_of(tmp_path, ranks="topology"), source="a b/cluster.yaml")
    with pytest.raises(UsageError, match=r"ranks: topology in a b/cluster\.yaml") as refused:
        refuse_reorder(intent_of(tmp_path), source="a b/cluster.yaml")
    assert refused.value.hint == "${EDITOR:-nano} 'a b/cluster.yaml'"


def test_neighbours_are_put_together_and_a_rehearsal_says_that_they_are_simulated() -> None:
    order = order_of([LEFT, RIGHT, LEFT, RIGHT], SLOTS, "p5.48xlarge", is_rehearsal=True)
    assert order.ranks == (0, 2, 1, 3)
    assert order.summary == "by network topology (2 groups of neighbours, simulated): 2 nodes changed rank"


def test_an_order_that_was_right_already_is_said_to_be() -> None:
    order = order_of([LEFT, LEFT, RIGHT, RIGHT], SLOTS, "p5.48xlarge", is_rehearsal=False)
    assert (order.ranks, order.summary) == (SLOTS, "by network topology (2 groups of neighbours): no rank changed")


@pytest.mark.parametrize("paths", [[(), (), (), ()], [LEFT, RIGHT, (), LEFT]], ids=["of none", "not of all"])
def test_a_topology_that_aws_does_not_tell_of_every_node_changes_nothing(paths: list[tuple[str, ...]]) -> None:
    order = order_of(paths, (0, 3, 2, 1), "g6.12xlarge", is_rehearsal=False)
    assert (order.ranks, order.summary) == ((0, 3, 2, 1), "as they were: AWS gives no topology of g6.12xlarge")
