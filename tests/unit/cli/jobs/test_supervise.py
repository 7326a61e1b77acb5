"""What a node's supervisor makes of its ranks and of a coordinator that is silent."""

from __future__ import annotations

from typing import Any  # JSON

import pytest
from clusterctl.on_node.job.coordination import LOST_AFTER_S, MET_WITHIN_S
from clusterctl.on_node.job.supervise import ends_by_now, patience_s

ENDED_WELL = {"rank": 0, "code": 0}
FAILED = {"rank": 0, "code": 7}
LAUNCHER = {"rank": None, "code": 1}
KILLED = {"rank": None, "code": None, "signal": 9}
VANISHED = {"rank": 0, "code": None, "signal": 9, "is_vanished": True}


class FakeRanks:
    """One rank, which ends, and its launcher with it, as soon as somebody has asked for either."""

    def __init__(self, *, is_over: bool, end: dict[str, Any] | None, launcher: dict[str, Any] = LAUNCHER) -> None:
        self._launcher = launcher
        self._is_over = is_over
        self._end = end

    def has_launcher_ended(self) -> bool:
        was_over, self._is_over = self._is_over, True
        return was_over

    def ended(self) -> list[dict[str, Any]]:
        was_over, self._is_over = self._is_over, True
        return [self._end] if was_over and self._end is not None else []

    def launcher_failure(self) -> dict[str, Any]:
        return self._launcher


@pytest.mark.parametrize(
    ("is_over", "end", "expected"),
    [
        (False, ENDED_WELL, [ENDED_WELL]),
        (True, ENDED_WELL, [ENDED_WELL]),
        (True, FAILED, [FAILED]),
        (True, None, [LAUNCHER]),
        (False, None, []),
    ],
)
def test_a_rank_that_ends_while_it_is_looked_at_is_no_failure_of_its_launcher(
    is_over: bool, end: dict[str, Any] | None, expected: list[dict[str, Any]]
) -> None:
    assert ends_by_now(FakeRanks(is_over=is_over, end=end), 1) == expected


@pytest.mark.parametrize(("launcher", "expected"), [(KILLED, [VANISHED, KILLED]), (LAUNCHER, [VANISHED])])
def test_ranks_that_ended_with_a_killed_launcher_are_not_the_cause(
    launcher: dict[str, Any], expected: list[dict[str, Any]]
) -> None:
    assert ends_by_now(FakeRanks(is_over=True, end=VANISHED, launcher=launcher), 1) == expected


@pytest.mark.parametrize(
    ("is_started", "is_cancelled", "expected_s"),
    [
        (False, False, MET_WITHIN_S),
        (False, True, LOST_AFTER_S),
        (True, False, LOST_AFTER_S),
    ],
)
def test_who_is_told_to_cancel_does_not_wait_long_for_a_coordinator(
    is_started: bool, is_cancelled: bool, expected_s: float
) -> None:
    assert patience_s(is_started=is_started, is_cancelled=is_cancelled) == expected_s
