"""An `extend` counts the time that its own steps take: what was right when it was typed may be too late by then."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from clusterctl.lifecycle.deadline_request import AWS_LEFT, DeadlineRequest
from clusterctl.lifecycle.extend import (
    ExtendRequest,
    Extension,
    RepairedCluster,
    checked_plan,
    move_deadline,
    move_everywhere,
    move_of,
)
from clusterctl.output import Output
from clusterctl_infra.errors import CapExceeded, CloudError
from clusterctl_infra.outputs import inventory_to_json

from tests.unit.cli.cloud.fake_answers import clients_of
from tests.unit.cli.cost.paid_cluster import an_inventory
from tests.unit.cli.lifecycle.held_cluster import DEADLINE, SLOTS, Clock, alive, held, slow_engine_of
from tests.unit.cli.lifecycle.recorded_runs import ended, runs_of

REQUEST = ExtendRequest(
    inventory=an_inventory(), asked=DeadlineRequest(by=timedelta(hours=1)), is_agreed=True, as_json=False
)


def test_a_repair_that_takes_until_the_schedule_may_fire_moves_no_deadline(tmp_path: Path) -> None:
    clock = Clock(DEADLINE - AWS_LEFT - timedelta(seconds=60))
    there = held(tmp_path, clock, repair_s=90)
    with pytest.raises(CapExceeded, match=r"train ends at .*, in 2 m 30 s: with less than 3 m left"):
        move_deadline(REQUEST, there, now=clock)
    assert there.change.stack.config_file.read_text() == "config: {}\n"


def test_a_repair_that_ends_in_time_is_followed_by_the_engine(tmp_path: Path) -> None:
    clock = Clock(DEADLINE - AWS_LEFT - timedelta(seconds=60))
    there = held(tmp_path, clock, repair_s=30)
    with pytest.raises(AssertionError, match="the engine was run: up"):
        move_deadline(REQUEST, there, now=clock)


def test_with_a_clock_that_is_off_nothing_is_repaired_and_nothing_moved(tmp_path: Path) -> None:
    clock = Clock(DEADLINE - timedelta(hours=1))
    slow = clients_of(alive(), sent_at="Sat, 21 Nov 2020 20:00:00 GMT")
    there = held(tmp_path, clock, repair_s=0, aws=slow)
    with pytest.raises(CloudError, match=r"ahead of AWS's .* so the deadline was not moved; set the clock"):
        move_deadline(REQUEST, there, now=clock)
    assert slow_engine_of(there.change).fetched == []


def test_who_agreed_too_late_has_nothing_repaired(tmp_path: Path) -> None:
    """The person looks at the price for two minutes, and types the cluster's name then."""
    clock = Clock(DEADLINE - AWS_LEFT - timedelta(seconds=60))
    there = held(tmp_path, clock, repair_s=0)
    terminal = Output(stdout=io.BytesIO(), stderr=io.BytesIO(), stderr_is_terminal=True, stdin=SlowTypist(clock))
    slow = replace(there.change, output=terminal)
    with pytest.raises(CapExceeded, match="with less than 3 m left"):
        move_deadline(replace(REQUEST, is_agreed=False), replace(there, change=slow), now=clock)
    assert slow_engine_of(slow).fetched == []


class SlowTypist(io.StringIO):
    """A terminal's input: the person types the cluster's name after two minutes."""

    def __init__(self, clock: Clock) -> None:
        super().__init__("train\n")
        self.clock = clock

    def isatty(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]  # typeshed: of bytes, too
        self.clock.at += timedelta(minutes=2)
        return super().readline(-1 if size is None else size)


@pytest.mark.parametrize(
    ("by", "runs"),
    [(timedelta(hours=1), [["--target"], ["--exclude"]]), (-timedelta(minutes=30), [["--exclude"]])],
    ids=["later: the nodes are told before the schedule moves", "sooner: the schedule moves first"],
)
def test_what_ends_first_is_moved_last(tmp_path: Path, by: timedelta, runs: list[list[str]]) -> None:
    """Cut off between two runs, the cluster still ends at the sooner one of both ends."""
    clock = Clock(DEADLINE - timedelta(hours=1))
    there = held(tmp_path, clock, repair_s=0, ends=[ended(is_well=True)] * len(runs))
    change = there.change
    inventory = change.home.inventory_file("train")
    inventory.parent.mkdir(parents=True)
    inventory.write_text(json.dumps(inventory_to_json(an_inventory())))
    request = replace(REQUEST, asked=DeadlineRequest(by=by))
    planned = checked_plan(request, there, now=clock())
    # No node is reached by SSH: all have lost their machines.
    repaired = RepairedCluster(state=there.state, gone=dict.fromkeys(SLOTS, "terminated"), intent=planned.intent)
    move_everywhere(Extension(request=request, planned=planned, move=move_of(planned), repaired=repaired))
    options = [sorted({option.partition("=")[0] for option in run.options}) for run in runs_of(change)]
    assert options == runs
