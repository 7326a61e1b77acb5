"""A node's lease: who has it when preparations are slow and keepers late, and which GPUs it is of."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.on_node.job import lease
from clusterctl.on_node.job.layout import Layout
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.cli.jobs.leases import in_the_way, run_out


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "run/clusterctl").mkdir(parents=True)
    return Layout(tmp_path)


def test_a_lease_that_ran_out_is_still_the_jobs_while_nobody_else_took_it(layout: Layout) -> None:
    assert in_the_way(layout, "first", "ada") == []
    run_out(layout)
    assert lease.holder(layout, "first") is None
    assert lease.renew(layout, "first")
    found = lease.holder(layout, "first")
    assert found is not None
    assert found["job"] == "first"


def test_a_keeper_that_comes_too_late_leaves_the_node_to_the_job_that_took_it(layout: Layout) -> None:
    assert in_the_way(layout, "first", "ada") == []
    run_out(layout)
    assert in_the_way(layout, "second", "bob") == []
    assert not lease.renew(layout, "first")
    assert not lease.hold(layout, "first")
    assert not lease.is_kept(layout, "first")
    assert lease.hold(layout, "second")
    assert lease.is_kept(layout, "second")
    assert not lease.renew(layout, "second"), "its keeper has it for as long as it lives"


def test_jobs_of_some_gpus_lie_side_by_side_and_whole_nodes_do_not(layout: Layout) -> None:
    assert lease.take(layout, "first", "ada", wanted=4, gpus=8) == ((0, 1, 2, 3), [])
    assert lease.take(layout, "second", "bob", wanted=3, gpus=8) == ((4, 5, 6), [])
    assert in_the_way(layout, "third", gpus=2) == ["first", "second"]
    assert in_the_way(layout, "third") == ["first", "second"]
    lease.release(layout, "first")
    assert lease.take(layout, "third", "eve", wanted=2, gpus=8) == ((0, 1), [])
    assert lease.hold(layout, "third")
    assert [(held["job"], held["gpus"]) for held in lease.holders(layout)] == [("second", [4, 5, 6]), ("third", [0, 1])]


def test_nobody_gets_a_gpu_of_a_node_that_a_job_has_whole(layout: Layout) -> None:
    assert in_the_way(layout, "first") == []
    assert in_the_way(layout, "second", gpus=1) == ["first"]
    assert lease.free_gpus(lease.holders(layout), 8) == ()


def test_a_job_has_what_it_took_when_its_taking_is_said_again(layout: Layout) -> None:
    assert lease.take(layout, "first", "ada", wanted=2, gpus=8) == ((0, 1), [])
    assert lease.take(layout, "first", "ada", wanted=2, gpus=8) == ((0, 1), [])
    assert in_the_way(layout, "first", "somebody else", gpus=2) == ["first"]


@settings(max_examples=50)
@given(wanted=st.lists(st.one_of(st.none(), st.integers(1, 8)), max_size=8))
def test_no_gpu_is_ever_held_twice(tmp_path_factory: pytest.TempPathFactory, wanted: list[int | None]) -> None:
    layout = Layout(tmp_path_factory.mktemp("node"))
    for number, count in enumerate(wanted):
        in_the_way(layout, f"job-{number}", gpus=count)
    held = [index for lease_of_one in lease.holders(layout) for index in lease_of_one["gpus"] or range(8)]
    assert bool(held) == bool(wanted), "the first one finds the node free"
    assert len(held) == len(set(held))
