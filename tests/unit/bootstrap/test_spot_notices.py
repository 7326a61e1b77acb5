"""What a node does about AWS's notices: who is told, how often, how it is marked, and what else goes on."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from clusterctl_bootstrap.node import status
from clusterctl_bootstrap.node.notices import Notices
from clusterctl_bootstrap.node.spot_market import SpotNotices

from tests.unit.bootstrap.machine_that_ends import MINUTE, STARTED_S, Ending, ask

WHY = "AWS takes this spot machine back at 08:02:00 UTC"
AT = "2027-01-15T08:00:00Z"


class SilentHook:
    """A hook that runs nothing, and keeps what it was started with."""

    def __init__(self) -> None:
        self.started: list[dict[str, str]] = []
        self.looks = 0
        """How often somebody asked whether it runs; only then does a hook report how it ended."""

    def start(self, limit_s: int, **more: str) -> None:
        self.started.append({"limit_s": str(limit_s), **more})

    def is_running(self) -> bool:
        self.looks += 1
        return False


def interrupted(second: float) -> SpotNotices:
    """A notice that ends the machine at that second."""
    return SpotNotices(ends="2027-01-15T08:02:00Z", ends_s=STARTED_S + second, at=AT)


def notice(ending: Ending) -> object:
    """The notice as `clusterctl status` gets it."""
    return json.loads(status.line(ending.root)).get("notice")


@pytest.fixture
def ending(tmp_path: Path) -> Ending:
    """A booted machine whose deadline is in an hour."""
    made = Ending(tmp_path)
    status.begin(made.root)
    made.deadline(60 * MINUTE)
    return made


@pytest.fixture
def hook(ending: Ending) -> SilentHook:
    ending.watch.hook = SilentHook()
    return ending.watch.hook


def test_an_interruption_is_warned_of_with_the_time_that_is_left(
    ending: Ending, hook: SilentHook, caught: list[int]
) -> None:
    ask(ending, os.getpid())
    ending.notices = interrupted(120)
    assert ending.look(3) == f"train-2 ends in 117 seconds ({WHY}): save what is to be kept"
    assert caught == [signal.SIGUSR1]
    more = {"CLUSTERCTL_ENDS_IN_S": "117", "CLUSTERCTL_END_REASON": WHY}
    assert hook.started == [{"limit_s": "107", **more}]
    assert notice(ending) == {"kind": "interruption", "time": "2027-01-15T08:02:00Z", "at": AT}


def test_an_interruption_is_told_once_and_the_node_does_not_end_itself(
    ending: Ending, hook: SilentHook, caught: list[int]
) -> None:
    ask(ending, os.getpid())
    ending.notices = interrupted(120)
    shown = [ending.look(second) for second in range(0, 150, 5)]
    assert len([text for text in shown if text]) == 1
    assert (len(caught), len(hook.started), ending.has_ended) == (1, 1, False)


def test_a_watch_that_starts_anew_tells_nothing_twice_before_it_has_asked_again(
    ending: Ending, caught: list[int]
) -> None:
    ask(ending, os.getpid())
    ending.notices = interrupted(120)
    ending.look(0)
    ending.started_anew()
    hook = ending.watch.hook = SilentHook()
    assert [ending.look(second) for second in (10, 20)] == ["", ""]
    assert (len(caught), hook.started) == (1, [])


def test_a_notice_that_disappears_gives_the_node_back(ending: Ending) -> None:
    ending.notices = interrupted(120)
    ending.look(0)
    ending.notices = SpotNotices()
    assert ending.look(10) == "train-2 goes on: it ends in 60 minutes"
    assert notice(ending) is None
    assert "15 minutes" in ending.look(45 * MINUTE), "and its deadline is warned of as ever"


def test_who_saves_before_the_deadline_is_not_told_to_save_again(
    ending: Ending, hook: SilentHook, caught: list[int]
) -> None:
    ask(ending, os.getpid())
    ending.look(56 * MINUTE)
    ending.notices = interrupted(58 * MINUTE)
    assert WHY in ending.look(56 * MINUTE + 10), "people are told that it is sooner"
    assert (len(caught), len(hook.started)) == (1, 1)


def test_a_deadline_before_aws_is_the_guards(ending: Ending, hook: SilentHook) -> None:
    ending.look(59 * MINUTE)
    ending.notices = interrupted(61 * MINUTE)
    assert ending.look(59 * MINUTE + 5) == ""
    assert len(hook.started) == 1


@pytest.mark.parametrize(("late_s", "counts"), [(120, True), (121, False)])
def test_an_interruption_counts_until_two_minutes_after_its_time(ending: Ending, late_s: int, counts: bool) -> None:
    notices = Notices(ending.root, lambda: interrupted(120))
    assert (notices.end(STARTED_S + 120 + late_s) is not None) is counts


def test_a_rule_that_wants_an_end_changes_nothing_of_awss(tmp_path: Path) -> None:
    verdicts = [""]
    ending = Ending(tmp_path, lambda: verdicts[0])
    ending.deadline(60 * MINUTE)
    ending.notices = interrupted(120)
    ending.look(0)
    verdicts[0] = "idle"
    assert [ending.look(second) for second in (30, 60, 119)] == ["", "", ""]
    assert not ending.has_ended
    ending.notices = SpotNotices()
    ending.look(130)
    assert ending.has_ended, "the rule holds when AWS does not take it"


def test_a_recommendation_runs_its_hook_marks_the_node_and_ends_nothing(ending: Ending, hook: SilentHook) -> None:
    own = ending.watch.notices.hook = SilentHook()
    ending.notices = SpotNotices(rebalance="2027-01-15T07:59:58Z", at=AT)
    assert ending.look(0) == "AWS may take train-2 back soon (it said so at 07:59:58 UTC): save what is to be kept"
    assert [ending.look(second) for second in (1, 300)] == ["", ""]
    assert own.looks == 3
    more = {"CLUSTERCTL_NOTICE": "rebalance", "CLUSTERCTL_NOTICE_TIME": "2027-01-15T07:59:58Z"}
    assert (own.started, hook.started) == ([{"limit_s": "600", **more}], [])
    assert notice(ending) == {"kind": "rebalance", "time": "2027-01-15T07:59:58Z", "at": AT}
    assert not ending.has_ended


def test_a_recommendation_is_told_once_whatever_comes_after_it(ending: Ending) -> None:
    ending.notices = SpotNotices(rebalance="2027-01-15T07:59:58Z", at=AT)
    ending.look(0)
    ending.started_anew()
    own = ending.watch.notices.hook = SilentHook()
    assert ending.look(1) == ""
    ending.notices = interrupted(120)._replace(rebalance=ending.notices.rebalance)
    assert ending.look(2) == f"train-2 ends in 118 seconds ({WHY}): save what is to be kept"
    assert own.started == []


def test_an_interruption_stands_before_a_recommendation_and_gives_way_to_it(ending: Ending) -> None:
    recommended = SpotNotices(rebalance="2027-01-15T07:59:58Z", at=AT)
    ending.notices = interrupted(120)._replace(rebalance=recommended.rebalance)
    ending.look(0)
    assert notice(ending) == {"kind": "interruption", "time": "2027-01-15T08:02:00Z", "at": AT}
    ending.notices = recommended
    ending.look(5)
    assert notice(ending) == {"kind": "rebalance", "time": "2027-01-15T07:59:58Z", "at": AT}


def test_a_boot_that_begins_after_the_mark_does_not_take_it_away(ending: Ending) -> None:
    ending.notices = interrupted(120)
    ending.look(0)
    status.begin(ending.root)
    assert notice(ending) is None
    ending.look(1)
    assert notice(ending) is not None


def test_a_mark_that_cannot_be_written_keeps_nobody_from_being_warned(ending: Ending) -> None:
    written = ending.root / "etc/clusterctl/status.json"
    written.unlink()
    written.mkdir()
    ending.notices = interrupted(120)
    assert WHY in ending.look(0)


def test_without_a_notice_nothing_is_written(ending: Ending) -> None:
    before = status.line(ending.root)
    ending.look(0)
    assert not (ending.root / "run/clusterctl/notices.json").exists()
    assert status.line(ending.root) == before
