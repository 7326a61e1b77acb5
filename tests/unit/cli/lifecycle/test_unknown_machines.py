"""What is said of machines that no state knows, before they are ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from clusterctl.cloud.instances import InstanceState
from clusterctl.lifecycle.unknown_machines import unknown_lines

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def machine(id: str, *, slot: int | None = None, launched_at: datetime | None = None) -> InstanceState:
    return InstanceState(
        instance_id=id,
        slot=slot,
        state="running",
        private_ip=None,
        public_ip=None,
        reason=None,
        launched_at=launched_at,
    )


def test_each_is_named_with_its_slot_and_its_age_so_that_who_wants_it_still_can_say_no() -> None:
    old = machine("i-1", slot=3, launched_at=NOW - timedelta(hours=2))
    assert unknown_lines([old, machine("i-2")], now=NOW) == [
        "i-1 (slot 3, launched 2 h ago): of this cluster, and in no Pulumi state",
        "i-2: of this cluster, and in no Pulumi state",
    ]


def test_of_many_some_are_named_and_all_are_counted() -> None:
    lines = unknown_lines([machine(f"i-{number}") for number in range(40)], now=NOW)
    assert (len(lines), lines[-1]) == (4, "and 37 more machines like these")
    assert unknown_lines([], now=NOW) == []
