"""What AWS said is written down once, survives a torn line, and is read from EC2's own words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from clusterctl.cloud.instances import InstanceState, instance_state, transition_time
from clusterctl.cloud.reservations import ReservationState
from clusterctl.cost.reserved import NOTED_EVERY
from clusterctl.cost.sighting_file import note_instances, note_reservations, note_resized, read_observed, read_seen
from clusterctl.home import Home
from clusterctl_infra.ledger import Ledger

from tests.unit.cli.cost.paid_cluster import a_span

LAUNCHED = datetime(2026, 3, 1, 12, tzinfo=UTC)
ENDED = LAUNCHED + timedelta(hours=1)


def machine(state: str = "running", *, ended_at: datetime | None = None) -> InstanceState:
    return InstanceState(
        instance_id="i-a",
        slot=3,
        state=state,
        private_ip=None,
        public_ip=None,
        reason=None,
        launched_at=LAUNCHED,
        ended_at=ended_at,
        instance_type="p5.48xlarge",
    )


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_only_what_is_new_is_written_and_a_machine_that_runs_on_now_and_then(tmp_path: Path) -> None:
    path = tmp_path / "observed" / "0123456789ab.jsonl"
    for seconds, state, ended, count in (
        (10, "running", None, 1),
        (20, "running", None, 1),
        (NOTED_EVERY.total_seconds() + 10, "running", None, 2),
        (4000, "shutting-down", None, 3),
        (4001, "terminated", ENDED, 4),
        (4002, "terminated", ENDED, 4),
    ):
        note_instances(path, [machine(state, ended_at=ended)], at=LAUNCHED + timedelta(seconds=seconds))
        assert lines(path) == count
    seen = read_seen(path)["i-a"]
    assert (seen.slot, seen.instance_type, seen.launched_at, seen.ended_at) == (3, "p5.48xlarge", LAUNCHED, ENDED)
    assert seen.alive_at == LAUNCHED + NOTED_EVERY + timedelta(seconds=10)
    assert seen.gone_at == LAUNCHED + timedelta(seconds=4000)


def test_each_size_that_a_reservation_gets_is_written_also_one_that_it_had_before(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    first = ReservationState(
        reservation_id="cr-1", instance_type="p5.48xlarge", places=2, state="active", created_at=LAUNCHED, ends_at=None
    )
    note_reservations(path, [first], at=LAUNCHED)
    for hours, places, count in ((1, 4, 2), (2, 4, 2), (3, 2, 3), (4, 2, 3)):
        note_resized(path, "cr-1", places, at=LAUNCHED + timedelta(hours=hours))
        assert lines(path) == count


def test_a_machine_that_aws_shows_no_more_is_gone_since_the_first_look_without_it(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    note_instances(path, [machine()], at=LAUNCHED)
    note_instances(path, [], at=LAUNCHED + timedelta(seconds=5))
    assert read_seen(path)["i-a"].gone_at is None, "a list may be short by what was just made"
    for hours in (2, 3):
        note_instances(path, [], at=LAUNCHED + timedelta(hours=hours))
    assert lines(path) == 2
    seen = read_seen(path)["i-a"]
    assert (seen.gone_at, seen.ended_at, seen.slot) == (LAUNCHED + timedelta(hours=2), None, 3)


def test_a_machine_that_was_missing_and_is_there_again_was_never_gone(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for hours, there in ((0, [machine()]), (1, []), (2, [machine()])):
        note_instances(path, there, at=LAUNCHED + timedelta(hours=hours))
    assert read_seen(path)["i-a"].gone_at is None


def test_a_torn_line_is_none_and_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    note_instances(path, [machine()], at=LAUNCHED)
    with path.open("a") as file:
        file.write('{"instance_id": "i-b"}\n["i-c"]\n{"instance_id": "i-')
    assert set(read_seen(path)) == {"i-a"}
    assert read_seen(tmp_path / "none.jsonl") == {}


def test_where_nothing_can_be_written_nothing_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    note_instances(tmp_path / "file" / "x.jsonl", [machine()], at=LAUNCHED)


@pytest.mark.parametrize(
    ("reason", "at"),
    [
        ("User initiated (2026-03-01 13:00:00 GMT)", ENDED),
        ("Client.InstanceInitiatedShutdown: Instance initiated shutdown", None),
        ("", None),
        ("User initiated (2026-13-01 13:00:00 GMT)", None),
    ],
)
def test_the_instant_is_read_from_the_transition_reason(reason: str, at: datetime | None) -> None:
    assert transition_time(reason) == at


def test_a_machine_that_is_stopped_has_not_ended() -> None:
    row = {"InstanceId": "i-1", "StateTransitionReason": "User initiated (2026-03-01 13:00:00 GMT)"}
    assert instance_state({**row, "State": {"Name": "stopped"}}).ended_at is None
    assert instance_state({**row, "State": {"Name": "shutting-down"}}).ended_at == ENDED


MADE_ROOM = ReservationState(
    reservation_id="cr-1",
    instance_type="p4d.24xlarge",
    places=2,
    state="active",
    created_at=LAUNCHED,
    ends_at=LAUNCHED + timedelta(hours=12),
)
KNOWN = Ledger(spans=(a_span(3, "i-a"),))
PRICED = {
    "its machine is in the ledger": (KNOWN, set()),
    "in no ledger": (Ledger(spans=(a_span(3, "i-b"),)), {"p5.48xlarge"}),
    "no ledger yet": (None, {"p5.48xlarge", "p4d.24xlarge"}),
}


@pytest.mark.parametrize(("ledger", "priced"), PRICED.values(), ids=PRICED.keys())
def test_what_was_seen_has_todays_price_of_what_no_ledger_prices(
    tmp_path: Path, ledger: Ledger | None, priced: set[str]
) -> None:
    home = Home(path=tmp_path)
    note_instances(home.observed_file("0123456789ab"), [machine()], at=LAUNCHED)
    note_reservations(home.observed_file("0123456789ab"), [MADE_ROOM], at=LAUNCHED)
    observed = read_observed(home, ledger, cluster_id="0123456789ab", region="us-west-2")
    assert (set(observed.machines), set(observed.reservations)) == ({"i-a"}, {"cr-1"})
    assert set(observed.usd_per_hour) == priced
    assert all(price is not None and price > 0 for price in observed.usd_per_hour.values())
