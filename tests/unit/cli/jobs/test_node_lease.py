"""A node's lease against slow preparations, late supervisors and what a job leaves behind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any  # JSON

import pytest
from clusterctl.on_node.job import lease
from clusterctl.on_node.job.layout import Layout, read_json, write_json
from clusterctl.on_node.job.prepare import discard, paths_to_give
from clusterctl.on_node.job.supervise import ends_by_now


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "run/clusterctl").mkdir(parents=True)
    return Layout(tmp_path)


def run_out(layout: Layout) -> None:
    file = layout.lease / "holder.json"
    write_json(file, {**read_json(file), "until_s": 0.0})


def test_a_lease_that_ran_out_is_still_the_jobs_while_nobody_else_took_it(layout: Layout) -> None:
    assert lease.take(layout, "first", "ada") is None
    run_out(layout)
    assert lease.renew(layout, "first")
    found = lease.holder(layout)
    assert found is not None
    assert found["job"] == "first"


def test_who_comes_late_does_not_take_another_jobs_lease(layout: Layout) -> None:
    assert lease.take(layout, "first", "ada") is None
    run_out(layout)
    assert lease.take(layout, "second", "bob") is None
    assert not lease.renew(layout, "first")
    assert not lease.hold(layout, "first")
    assert lease.hold(layout, "second")
    assert lease.is_kept(layout, "second")


def test_what_a_job_makes_among_its_secrets_keeps_its_node_from_nobody(layout: Layout) -> None:
    assert lease.take(layout, "first", "ada") is None
    (layout.secrets("first") / "made").mkdir(parents=True)
    lease.forget(layout, "first")
    assert not layout.secrets("first").exists()
    assert lease.take(layout, "second", "bob") is None


def test_what_was_prepared_goes_also_where_the_lease_has_run_out(layout: Layout) -> None:
    assert lease.take(layout, "first", "ada") is None
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
