"""What an execution's name tells of a cluster's end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any  # rows of ListExecutions

import pytest
from clusterctl.cloud.early_end import REAPED, EarlyEnd, early_end, newest_early_end, running_ends
from clusterctl_bootstrap.node import dead_man, idle_cluster
from clusterctl_bootstrap.node.release import STAMP
from clusterctl_infra.names import guard_name

from tests.unit.cli.cloud.fake_answers import clients_of

BEGAN = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
STARTED = BEGAN + timedelta(hours=2)
NOW = BEGAN + timedelta(hours=3)
SINCE = datetime(2026, 11, 21, 11, 15, 7, tzinfo=UTC)
NAME = "idle-2026-11-21T11-15-07Z"
ID = "0123456789ab"
MACHINE = {"stateMachineArn": "arn:m", "name": guard_name(ID)}


def row(name: str = NAME, **changes: Any) -> dict[str, Any]:
    ended = {"stopDate": STARTED + timedelta(seconds=50), "status": "SUCCEEDED"}
    return {"name": name, "startDate": STARTED, **ended, **changes}


def test_an_idle_end_is_known_by_its_name() -> None:
    expected = EarlyEnd(reason="idle", since=SINCE, at=STARTED + timedelta(seconds=50))
    assert newest_early_end([row("e2a8b0c4"), row()], after=BEGAN, now=NOW) == expected


def test_of_several_ends_the_last_one_counts() -> None:
    """What lived on after the first one, as machines that were made meanwhile, ended with the last."""
    later = row(SINCE.strftime(dead_man.WHY_LOST + STAMP), stopDate=STARTED + timedelta(seconds=90))
    found = newest_early_end([later, row()], after=BEGAN, now=NOW)
    assert found is not None
    assert (found.reason, found.at) == ("without slot 0", STARTED + timedelta(seconds=90))


def test_an_end_that_is_under_way_bills_until_now() -> None:
    found = newest_early_end([row(status="RUNNING", stopDate=None)], after=BEGAN, now=NOW)
    assert found == EarlyEnd(reason="idle", since=SINCE, at=NOW)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        (idle_cluster.WHY, "idle"),
        (dead_man.WHY, "without a majority of its nodes"),
        (dead_man.WHY_LOST, "without slot 0"),
        (dead_man.WHY_UNSURE, "without slot 0"),
    ],
)
def test_the_name_that_nodes_give_is_read_as_they_mean_it(word: str, reason: str) -> None:
    found = newest_early_end([row(SINCE.strftime(word + STAMP))], after=BEGAN, now=NOW)
    assert found is not None
    assert (found.reason, found.since) == (reason, SINCE)


@pytest.mark.parametrize(("output", "is_end"), [('{"Ended": false}', False), ("{}", True), (None, True)])
def test_an_execution_that_found_slot_0_alive_is_no_end(output: str | None, is_end: bool) -> None:
    name = SINCE.strftime(dead_man.WHY_UNSURE + STAMP)
    answers: dict[tuple[str, str, str], Any] = {
        ("us-west-2", "list_state_machines", "stateMachines"): [MACHINE],
        ("us-west-2", "list_executions", "executions"): [row(name, executionArn="arn:x")],
        ("us-west-2", "describe_execution", "output"): output,
    }
    found = early_end(clients_of(answers), ID, after=BEGAN, gone_at=None, now=NOW)
    assert (found is not None) is is_end


def test_an_end_under_way_that_may_come_to_nothing_is_said_to_be_one() -> None:
    """`up` and `extend` name it to whoever waits."""
    rows = [row(SINCE.strftime(why + STAMP), status="RUNNING") for why in (dead_man.WHY_UNSURE, dead_man.WHY_LOST)]
    answers = {
        ("us-west-2", "list_state_machines", "stateMachines"): [MACHINE],
        ("us-west-2", "list_executions", "executions"): rows,
    }
    ends = running_ends(clients_of(answers), ID)
    assert [end.reason for end in ends] == ["without slot 0", "if slot 0 has no machine"]


@pytest.mark.parametrize("refused", [{}, {("fsx", "describe_file_systems"): "AccessDeniedException"}])
def test_data_that_aws_does_not_tell_of_counts_as_kept(refused: dict[tuple[str, str], str]) -> None:
    found = early_end(clients_of({}, refused=refused), "0123456789ab", after=BEGAN, gone_at=STARTED, now=NOW)
    assert found == EarlyEnd(reason=REAPED, since=None, at=STARTED, keeps_data=bool(refused))


NONE = {
    "a schedule's own": [row("0f3c")],
    "one that failed": [row(status="FAILED")],
    "one of machines before these": [row(startDate=BEGAN - timedelta(seconds=1))],
    "a name that only begins so": [row("idle-today")],
    "nothing": [],
}


@pytest.mark.parametrize("rows", NONE.values(), ids=NONE.keys())
def test_other_executions_are_no_early_end(rows: list[dict[str, Any]]) -> None:
    assert newest_early_end(rows, after=BEGAN, now=NOW) is None
