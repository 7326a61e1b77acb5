"""Rules that end a machine before its deadline: who is told, who is waited for, and when it goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from clusterctl_bootstrap.node.watch import DRAIN_S, LEAST_S

from tests.unit.bootstrap.machine_that_ends import MINUTE, STARTED_S, Ending, ask

WHY = "slot 0 was not seen for 30 minutes"


@pytest.fixture
def verdict() -> list[str]:
    """What the one rule says, changed by a test."""
    return []


@pytest.fixture
def ruled(tmp_path: Path, verdict: list[str]) -> Ending:
    """A machine whose deadline is in an hour, with one rule."""
    made = Ending(tmp_path, lambda: "".join(verdict))
    made.deadline(60 * MINUTE)
    return made


def test_a_rule_ends_the_machine_after_a_warning_when_nobody_saves_anything(ruled: Ending, verdict: list[str]) -> None:
    verdict.append(WHY)
    assert ruled.look(0) == f"train-2 ends in 5 minutes ({WHY}): save what is to be kept"
    ruled.look(LEAST_S - 1)
    assert not ruled.has_ended
    assert ruled.look(LEAST_S) == f"train-2 ends now: {WHY}"
    assert ruled.has_ended
    clock, at = (ruled.root / "run/clusterctl/last-stage-at").read_text().split()
    assert (clock, int(at)) == ("uptime", STARTED_S + LEAST_S + 90)


def test_last_words_are_said_before_the_end_and_leave_the_others_time_to_save(tmp_path: Path) -> None:
    ending = Ending(tmp_path, lambda: WHY)
    ending.deadline(60 * MINUTE)
    calls: list[tuple[int, bool]] = []
    ending.watch.last_words = lambda wait_s: calls.append((wait_s, ending.has_ended))
    ending.look(0)
    assert calls == []
    ending.look(LEAST_S)
    assert calls == [(DRAIN_S, False)]


def test_a_process_that_asked_holds_an_early_end_until_it_is_gone(
    ruled: Ending, verdict: list[str], caught: list[int]
) -> None:
    entry = ask(ruled, os.getpid())
    verdict.append(WHY)
    for second in (0, LEAST_S, DRAIN_S // 2):
        ruled.look(second)
        assert not ruled.has_ended
    entry.unlink()
    ruled.look(DRAIN_S // 2 + 1)
    assert (ruled.has_ended, caught) == (True, [signal.SIGUSR1])


def test_a_process_that_never_ends_does_not_hold_an_early_end_for_longer(
    ruled: Ending, verdict: list[str], caught: list[int]
) -> None:
    ask(ruled, os.getpid())
    verdict.append(WHY)
    ruled.look(0)
    ruled.look(DRAIN_S)
    assert ruled.has_ended


def test_a_rule_that_wants_no_end_any_more_gives_the_machine_back(ruled: Ending, verdict: list[str]) -> None:
    verdict.append(WHY)
    ruled.look(0)
    verdict.clear()
    assert ruled.look(5) == "train-2 goes on: it ends in 60 minutes"
    ruled.look(LEAST_S + 5)
    assert not ruled.has_ended
    verdict.append(WHY)
    assert "5 minutes" in ruled.look(30), "and is warned of anew"


def test_a_rule_that_cannot_judge_ends_nothing_and_silences_nobody(tmp_path: Path) -> None:
    def blind() -> str:
        raise OSError("no space left on device")

    ending = Ending(tmp_path, blind)
    ending.deadline(60 * MINUTE)
    assert "15 minutes" in ending.look(45 * MINUTE)
    ending.look(46 * MINUTE)
    assert not ending.has_ended


def test_a_deadline_before_a_rules_end_is_the_guards(ruled: Ending, verdict: list[str]) -> None:
    verdict.append(WHY)
    assert "(its deadline)" in ruled.look(58 * MINUTE)
    ruled.look(60 * MINUTE + 1)
    assert not ruled.has_ended


def test_a_machine_ends_also_where_its_last_stage_cannot_be_written(ruled: Ending, verdict: list[str]) -> None:
    verdict.append(WHY)
    ruled.look(0)
    last_stage = ruled.root / "run/clusterctl/last-stage-at"
    last_stage.unlink()
    (last_stage / "in the way").mkdir(parents=True)
    ruled.look(LEAST_S)
    assert ruled.has_ended


def test_where_there_is_no_systemd_the_first_process_is_ended(ruled: Ending, verdict: list[str]) -> None:
    (ruled.root / "run/systemd/system").rmdir()
    verdict.append(WHY)
    ruled.look(0)
    ruled.look(LEAST_S)
    assert ["sh", "-c", "kill 1"] in ruled.outside.commands
