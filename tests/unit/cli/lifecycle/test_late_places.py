"""Places that AWS has reserved and does not count as free yet: the machines are asked for again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pytest
from clusterctl.engine.boundary import RunResult
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.failed_up import raise_failed

from tests.unit.cli.lifecycle.recorded_runs import (
    BEFORE,
    NO_ENGINE,
    ended,
    engine_of,
    intent_of,
    no_place,
    refused,
    runs_of,
    screen_of,
    up,
)


def test_machines_that_found_no_reserved_place_are_made_by_another_run(runner: Callable[..., Change]) -> None:
    well = partial(ended, is_well=True)
    change, waited = runner(well, no_place, no_place, well), list[float]()
    ran = up(change, sleep=waited.append)
    assert ran.result.succeeded
    assert waited == [15, 30]
    assert engine_of(change).wrote_state_once == [False, True, True, True]
    assert (
        "does not count all reserved places as free yet (ReservationCapacityExceeded): trying again in 15 s"
        in screen_of(change)
    )


@pytest.mark.parametrize(
    ("ends", "runs"),
    [
        ([no_place] * 4, 5),
        ([partial(ended, is_well=False, codes=["ReservationCapacityExceeded", "InvalidIPAddress.InUse"])], 2),
        ([partial(ended, is_well=False, codes=["InsufficientInstanceCapacity"])], 2),
        ([partial(ended, is_well=False, stderr="no")], 2),
    ],
)
def test_places_are_not_waited_for_without_end_nor_for_another_reason(
    runner: Callable[..., Change], ends: Sequence[Callable[[], RunResult]], runs: int
) -> None:
    change = runner(partial(ended, is_well=True), *ends)
    assert not up(change, sleep=lambda seconds: None).result.succeeded
    assert len(runs_of(change)) == runs


def test_whoever_stops_the_waiting_for_places_is_told_what_exists(runner: Callable[..., Change]) -> None:
    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    change = runner(partial(ended, is_well=True), no_place)
    ran = up(change, sleep=stop)
    assert ran.result.interrupted
    with pytest.raises(KeyboardInterrupt):
        raise_failed(change, ran, before_text=BEFORE, before_state=StackState(), intent=intent_of(change), shown="s")
    assert "33 reserved places are empty and bill" in screen_of(change)


def test_where_another_run_for_places_does_not_start_the_first_one_has_failed(runner: Callable[..., Change]) -> None:
    ran = up(runner(partial(ended, is_well=True), no_place, refused(NO_ENGINE)), sleep=lambda seconds: None)
    assert [refusal.code for refusal in ran.result.refusals] == ["ReservationCapacityExceeded"]
