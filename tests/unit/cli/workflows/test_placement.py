"""Which task goes to which node of a cluster, and the message where there is no room for it."""

from __future__ import annotations

import pytest
from clusterctl.workflows.placement import DoesNotFit, NodeCapacity, capacities_of, place, unfit
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.outputs import InventoryNode
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cli.workflows.workflow_files import inventory, read

P5 = load_catalog().types["p5.48xlarge"]


def free_nodes(count: int, *, gpus: int = 8, free: int | None = None) -> tuple[NodeCapacity, ...]:
    nodes = [
        InventoryNode(slot=slot, rank=slot, name=f"n-{slot}", private_ip=f"10.0.0.{slot}", host_public_key="")
        for slot in range(count)
    ]
    return tuple(
        NodeCapacity(
            node=node,
            gpus=gpus,
            free_gpus=gpus if free is None else free,
            is_free=free is None,
            cpus=192.0,
            memory_mib=2**21,
            storage_mib=None,
        )
        for node in nodes
    )


def workflow(*gpus: int, cpu: int = 1) -> str:
    tasks = "".join(
        f"    - {{name: t{index}, image: i, command: [a], resource: r{count}{', lead: true' if index == 0 else ''}}}\n"
        for index, count in enumerate(gpus)
    )
    kinds = "".join(f"    r{count}: {{gpu: {count}, cpu: {cpu}}}\n" for count in set(gpus))
    return f"workflow:\n  name: w\n  resources:\n{kinds}  groups:\n  - name: g\n    tasks:\n{tasks}"


def slots(text: str, nodes: tuple[NodeCapacity, ...], avoided: set[int] | None = None) -> list[tuple[int, int | None]]:
    found = read(text).workflow
    placed = place(found.groups[0].tasks, found.resources, nodes, avoided=avoided or set())
    return [(each.node.slot, each.gpus) for each in placed]


@pytest.mark.parametrize(
    ("gpus", "nodes", "expected"),
    [
        ((8, 8), 2, [(0, None), (1, None)]),
        ((4, 4), 2, [(0, 4), (1, 4)]),
        ((4, 4, 4, 4), 2, [(0, 4), (1, 4), (0, 4), (1, 4)]),
        ((4, 4, 8), 2, [(1, 4), (1, 4), (0, None)]),
        ((0, 8), 2, [(0, None), (1, None)]),
    ],
)
def test_tasks_are_spread_and_share_nodes_by_gpus_where_there_are_too_few(
    gpus: tuple[int, ...], nodes: int, expected: list[tuple[int, int | None]]
) -> None:
    assert slots(workflow(*gpus), free_nodes(nodes)) == expected


def test_nodes_to_be_avoided_are_taken_when_there_are_no_others() -> None:
    assert slots(workflow(8), free_nodes(2), {0}) == [(1, None)]
    assert slots(workflow(8), free_nodes(1), {0}) == [(0, None)]


def test_a_node_of_which_another_job_has_gpus_takes_only_what_is_left() -> None:
    assert slots(workflow(4), free_nodes(1, free=4)) == [(0, 4)]
    with pytest.raises(DoesNotFit, match="no node is left for t0, which needs 8 GPUs"):
        slots(workflow(8), free_nodes(1, free=4))


@given(st.lists(st.integers(0, 8), min_size=1, max_size=6), st.integers(1, 4))
def test_what_is_placed_never_shares_more_than_a_node_has(gpus: list[int], nodes: int) -> None:
    try:
        found = slots(workflow(*gpus), free_nodes(nodes))
    except DoesNotFit:
        return
    for slot in range(nodes):
        here = [count for at, count in found if at == slot]
        assert here.count(None) == 0 or len(here) == 1
        assert sum(count or 0 for count in here) <= 8


def test_what_no_node_can_take_is_told_for_each_task_by_the_catalogs_type() -> None:
    loaded = read(workflow(9, 4, cpu=193))
    assert unfit(loaded.workflow, capacities_of(inventory(2), P5), "p5.48xlarge") == [
        "task t0: gpu: 9 is more than the 8 of a node (p5.48xlarge)",
        "task t1: cpu: 193 is more than the 192 of a node (p5.48xlarge)",
    ]


def test_a_group_that_does_not_fit_at_once_is_told() -> None:
    loaded = read(workflow(8, 8, 8))
    (problem,) = unfit(loaded.workflow, capacities_of(inventory(2), P5), "p5.48xlarge")
    assert problem.startswith("group g: no node is left for t2, which needs 8 GPUs: the group has 3 tasks at the same ")
    assert problem.endswith("and of 2 nodes 2 are free")


def test_processors_are_summed_over_tasks_that_share_a_node() -> None:
    (problem,) = unfit(read(workflow(4, 4, cpu=100)).workflow, capacities_of(inventory(1), P5), "p5.48xlarge")
    assert problem.startswith("group g: no node is left for t1, which needs ")
    assert unfit(read(workflow(4, 4, cpu=96)).workflow, capacities_of(inventory(1), P5), "p5.48xlarge") == []


def test_what_nobody_knows_of_a_type_is_not_judged() -> None:
    assert unfit(read(workflow(8, cpu=500)).workflow, capacities_of(inventory(1), None), "of an unknown type") == []
