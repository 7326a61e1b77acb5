"""What a keeper leaves of its job's node, however the job's supervisor has ended."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any  # JSON

import pytest
from clusterctl.on_node.job import judge, lease
from clusterctl.on_node.job.events import read_events
from clusterctl.on_node.job.keep import see_through
from clusterctl.on_node.job.layout import Layout, read_state, write_json
from clusterctl.on_node.job.present_state import cancel, listed_state, present_state, tell_lost

from tests.unit.cli.jobs.leases import in_the_way


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """The layout of a node that the job `first` holds, which has a /tmp of its own."""
    (tmp_path / "run/clusterctl").mkdir(parents=True)
    layout = Layout(tmp_path)
    layout.tmp("first").mkdir(parents=True)
    assert in_the_way(layout, "first", "ada") == []
    assert lease.hold(layout, "first")
    written(layout, state="running")
    return layout


def written(layout: Layout, **changes: Any) -> None:
    state = {"job": "first", "attempt": 2, "slot": 3, "state": "running", "since_s": time.time(), "boot_id": ""}
    write_json(layout.state("first"), {**state, **changes})


@pytest.mark.parametrize(("status", "how"), [(-9, "signal 9"), (-1, "signal 1"), (0, "exit 0"), (3, "exit 3")])
def test_a_job_whose_supervisor_ended_without_a_word_is_lost_and_says_by_what(
    layout: Layout, status: int, how: str
) -> None:
    seen: list[str] = []
    see_through(layout, "first", supervised=lambda: status, end=lambda: seen.append(str(state_of(layout))))
    assert seen == ["running"], "what was left of the job is ended before anybody is told that it is over"
    left = read_state(layout, "first")
    assert left["outcome"] == {
        "state": judge.LOST,
        "cause": f"Node 3 was lost: its supervisor there ended ({how})",
        "exit_code": 255,
        "failure": None,
    }
    (event,) = read_events(layout.events("first"))
    assert (event["event"], event["attempt"], event["why"]) == (judge.LOST, 2, left["outcome"]["cause"])


def state_of(layout: Layout) -> Any:
    return read_state(layout, "first")["state"]


def test_what_the_supervisor_told_of_the_end_is_not_told_anew(layout: Layout) -> None:
    def supervised() -> int:
        written(layout, state="failed")
        return 0

    see_through(layout, "first", supervised=supervised, end=lambda: None)
    assert state_of(layout) == "failed"
    assert not layout.events("first").exists()


@pytest.mark.parametrize("fails", ["nothing", "supervised", "end"])
def test_the_node_is_free_afterwards_also_where_the_keeper_failed(layout: Layout, fails: str) -> None:
    def step(name: str) -> int:
        assert lease.is_kept(layout, "first"), "no other job may start while processes of this one are left"
        if name == fails:
            raise OSError(f"{name} failed")
        return 0

    def end() -> None:
        step("end")

    if fails == "nothing":
        see_through(layout, "first", supervised=lambda: step("supervised"), end=end)
    else:
        with pytest.raises(OSError, match=f"{fails} failed"):
            see_through(layout, "first", supervised=lambda: step("supervised"), end=end)
    assert in_the_way(layout, "second", "bob") == []
    assert not layout.tmp("first").exists()


def test_nothing_is_told_of_a_job_that_has_written_nothing(layout: Layout) -> None:
    layout.state("first").unlink()
    tell_lost(layout, "first", "its keeper there was killed")
    assert not layout.state("first").exists()


def test_a_job_that_its_keeper_holds_goes_on_but_not_after_a_restart(layout: Layout) -> None:
    assert present_state(layout, "first")["state"] == "running"
    layout.boot_id.parent.mkdir(parents=True, exist_ok=True)
    layout.boot_id.write_text("this start\n")
    written(layout, boot_id="this start")
    assert present_state(layout, "first")["state"] == "running"
    written(layout, boot_id="before")
    assert present_state(layout, "first")["outcome"]["cause"] == "Node 3 was lost: the node was restarted"


def test_a_job_that_is_cancelled_to_be_started_again_says_so_until_it_is_cancelled_for_good(layout: Layout) -> None:
    assert "is_to_restart" not in listed_state(layout, "first")
    cancel(layout, "first", is_to_restart=True)
    assert layout.cancel("first").exists()
    assert listed_state(layout, "first")["is_to_restart"]
    cancel(layout, "first")
    assert layout.cancel("first").exists()
    assert "is_to_restart" not in listed_state(layout, "first")


def test_a_job_that_has_ended_is_not_cancelled_but_may_be_marked_as_started_again(layout: Layout) -> None:
    tell_lost(layout, "first", "its supervisor is gone")
    assert cancel(layout, "first", is_to_restart=True)["state"] == judge.LOST
    assert listed_state(layout, "first")["is_to_restart"]
    assert not layout.cancel("first").exists()
