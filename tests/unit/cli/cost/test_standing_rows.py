"""What bills beside machines: from when, until when, and at what rate."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from clusterctl.cost.cost_row import CostRow
from clusterctl.cost.standing_rows import gone_with_machines, standing_rows
from clusterctl_infra.ledger import Ledger, Standing, StandingKind

from tests.unit.cli.cost.paid_cluster import BORN, DEADLINE, an_inventory, at

GATEWAY = Standing(kind="gateway", started_at=at(1), ended_at=None, usd_per_hour=0.05)


def rows_of(standing: Standing, now: datetime, **over: datetime) -> CostRow:
    """The one row of a ledger with this; `over`: since when a kind is not there any more."""
    kinds: dict[StandingKind, datetime] = {"gateway": over["gateway"]} if over else {}
    ledger = Ledger(standing=(standing,))
    (row,) = standing_rows(an_inventory(), ledger, over=kinds, deadline=DEADLINE, now=now)
    return row


def test_what_stands_bills_until_now_and_on_to_the_deadline() -> None:
    row = rows_of(GATEWAY, at(5))
    assert (row.kind, row.name, row.started_at, row.ended_at) == ("gateway", "gateway", at(1), None)
    assert row.usd_per_hour == 0.05
    assert row.spent_usd == pytest.approx(4 * 0.05)
    assert row.at_deadline_usd == pytest.approx(11 * 0.05)


@pytest.mark.parametrize(
    ("ended_h", "over_h", "expected_h"),
    [
        (None, 3.0, 3.0),
        (2.0, 3.0, 2.0),  # what the ledger knows is exact
        (None, 0.5, 1.0),  # never before it began
        (2.0, None, 2.0),
    ],
)
def test_what_is_gone_bills_no_longer(ended_h: float | None, over_h: float | None, expected_h: float) -> None:
    standing = replace(GATEWAY, ended_at=None if ended_h is None else at(ended_h))
    row = rows_of(standing, at(5), **({} if over_h is None else {"gateway": at(over_h)}))
    assert row.ended_at == at(expected_h)
    assert row.spent_usd == row.at_deadline_usd == pytest.approx((expected_h - 1) * 0.05)


@pytest.mark.parametrize("ledger", [None, Ledger()])
def test_without_a_ledger_today_s_rates_count_from_the_run_s_start(ledger: Ledger | None) -> None:
    inventory = an_inventory(gateway_usd_per_hour=None)
    rows = standing_rows(inventory, ledger, over={}, deadline=DEADLINE, now=at(2))
    assert [(row.kind, row.started_at, row.ended_at, row.usd_per_hour) for row in rows] == [
        ("addresses", BORN, None, 0.01),
        ("gateway", BORN, None, None),  # of no known price, and not for nothing
        ("storage", BORN, None, 1.38),
    ]
    before = an_inventory(prices_dated=None)
    assert standing_rows(before, ledger, over={}, deadline=DEADLINE, now=at(2)) == ()


@pytest.mark.parametrize(
    ("ends_h", "alive", "ways_out", "gone"),
    [
        ((3.0, 4.0), frozenset(), None, ["disks"]),
        ((3.0, 4.0), frozenset(), frozenset({"gateway"}), ["addresses", "disks"]),
        ((3.0, 4.0), frozenset(), frozenset(), ["addresses", "disks", "gateway"]),
        ((3.0, 4.0), frozenset({"i-a"}), frozenset(), []),
        ((3.0, 4.0), None, frozenset(), []),  # AWS was not asked
        ((3.0, None), frozenset(), frozenset(), []),
        ((), frozenset(), frozenset(), []),
    ],
)
def test_what_goes_with_machines_is_gone_since_the_last_of_them(
    ends_h: tuple[float | None, ...],
    alive: frozenset[str] | None,
    ways_out: frozenset[StandingKind] | None,
    gone: list[str],
) -> None:
    machines = [replace(rows_of(GATEWAY, at(5)), ended_at=None if end_h is None else at(end_h)) for end_h in ends_h]
    found = gone_with_machines(an_inventory(), machines, alive=alive, ways_out=ways_out)
    assert sorted(found) == gone
    assert set(found.values()) <= {at(4)}


def test_addresses_that_aws_gave_with_machines_go_with_them() -> None:
    inventory = an_inventory(addresses_go_with_machines=True)
    machines = [replace(rows_of(GATEWAY, at(5)), ended_at=at(4))]
    assert sorted(gone_with_machines(inventory, machines, alive=frozenset(), ways_out=None)) == ["addresses", "disks"]
