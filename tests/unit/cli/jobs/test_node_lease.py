"""A node's lease against slow preparations, late supervisors and what a job leaves behind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any  # JSON

import pytest
from clusterctl.on_node.job import lease
from clusterctl.on_node.job.layout import Layout
from clusterctl.on_node.job.prepare import discard, paths_to_give
from clusterctl.on_node.job.supervise import ends_by_now
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
    assert lease.renew(layout, "first")
    found = lease.holder(layout, "first")
    assert found is not None
    assert found["job"] == "first"


def test_who_comes_late_does_not_take_another_jobs_lease(layout: Layout) -> None:
    assert in_the_way(layout, "first", "ada") == []
    run_out(layout)
    assert in_the_way(layout, "second", "bob") == []
    assert not lease.renew(layout, "first")
    assert not lease.hold(layout, "first")
    assert lease.hold(layout, "second")
    assert lease.is_kept(layout, "second")


def test_what_a_job_makes_among_its_secrets_keeps_its_node_from_nobody(layout: Layout) -> None:
    assert in_the_way(layout, "first", "ada") == []
    (layout.secrets("first") / "made").mkdir(parents=True)
    lease.forget(layout, "first")
    assert not layout.secrets("first").exists()
    assert in_the_way(layout, "second", "bob") == []


def test_what_was_prepared_goes_also_where_the_lease_has_run_out(layout: Layout) -> None:
    assert in_the_way(layout, "first", "ada") == []
    layout.folder("first").mkdir(parents=True)
    layout.secrets("first").mkdir(parents=True)
    run_out(layout)
    discard(layout, "first")
    assert not layout.folder("first").exists()
    assert not layout.secrets("first").exists()


def test_a_folder_is_given_away_after_all_that_lies_in_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").touch()
    given = list(paths_to_give(tmp_path))
    assert sorted(given, key=len, reverse=True) == given
    assert given[-1] == str(tmp_path)
    assert os.path.join(str(tmp_path), "a", "b", "file") in given


class LastRankEndsBetween:
    """Ranks of which the last one ends, and the launcher after it, while they are looked at."""

    def __init__(self) -> None:
        self.is_over = False

    def ended(self) -> list[dict[str, Any]]:
        before, self.is_over = self.is_over, True
        return [{"code": 0}] if before else []

    def has_launcher_ended(self) -> bool:
        before, self.is_over = self.is_over, True
        return before

    def launcher_failure(self) -> dict[str, Any]:
        return {"code": 1}


def test_a_rank_that_ends_between_two_looks_is_no_failure_of_its_launcher() -> None:
    assert ends_by_now(LastRankEndsBetween(), 1) == [{"code": 0}]


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
    assert len(held) == len(set(held))
