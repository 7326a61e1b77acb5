"""The estimated bill: its arithmetic against a bill counted second by second."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from fractions import Fraction

import pytest
from clusterctl.cloud.early_end import REAPED, EarlyEnd
from clusterctl.cost.cost_row import CostRow, by_kind, cost_row, folded, sums
from clusterctl.cost.estimate import EMPTY, LATE, NO_LEDGER, TAIL, cost_rows, uncounted
from clusterctl.cost.view import cost_text
from clusterctl.status.overview import ended_early, ended_kinds
from clusterctl_infra.ledger import Ledger, Standing
from clusterctl_infra.plan.deadline import expenses, spent_usd
from hypothesis import given, settings

from tests.unit.cli.cost.paid_cluster import (
    ALL,
    BORN,
    DEADLINE,
    REPLACED,
    SECONDS,
    a_span,
    a_view,
    an_inventory,
    at,
    ledgers,
)
from tests.unit.infra.plan.plan_cases import a_plan

CENT = 0.01


def spent(hours: float, *, ledger: Ledger | None = REPLACED, alive: frozenset[str] | None = ALL) -> float | None:
    return sums(cost_rows(an_inventory(), ledger, alive=alive, now=at(hours))).spent_usd


def test_a_replacement_costs_what_the_machine_before_would_have() -> None:
    assert spent(3) == pytest.approx(3 * (2 * 55.04 + 0.01 + 1.38))


def test_every_kind_has_its_sum_and_they_make_the_whole() -> None:
    rows = cost_rows(an_inventory(), REPLACED, alive=ALL, now=at(3))
    kinds = by_kind(rows)
    assert {kind: round(each.spent_usd or 0, 2) for kind, each in kinds.items()} == {
        "node": 330.24,
        "addresses": 0.03,
        "storage": 4.14,
    }
    assert sums(rows).usd_per_hour == pytest.approx(an_inventory().usd_per_hour)


def test_at_the_deadline_all_that_runs_ran_until_then() -> None:
    rows = cost_rows(an_inventory(), REPLACED, alive=ALL, now=at(3))
    assert sums(rows).at_deadline_usd == pytest.approx(12 * (2 * 55.04 + 0.01 + 1.38))


def test_an_empty_reserved_slot_bills_on_and_is_named() -> None:
    rows = cost_rows(an_inventory(), REPLACED, alive=frozenset({"i-a"}), now=at(3))
    assert [(row.instance_id, row.note) for row in rows if row.note] == [("i-c", EMPTY)]
    assert sums(rows).spent_usd == spent(3)


def test_without_an_answer_nothing_is_called_empty() -> None:
    assert {row.note for row in cost_rows(an_inventory(), REPLACED, alive=None, now=at(3))} == {None}


def test_an_end_not_seen_counts_to_the_deadline_while_storage_bills_on() -> None:
    rows = cost_rows(an_inventory(), REPLACED, alive=frozenset(), now=at(14))
    machines = [row for row in rows if row.kind == "node"]
    assert {row.ended_at for row in machines} == {at(1), DEADLINE}
    assert sums(machines).spent_usd == pytest.approx(12 * 2 * 55.04)
    assert sums(rows).usd_per_hour == pytest.approx(1.39)


def test_a_cluster_that_ended_early_costs_until_its_end_and_says_why() -> None:
    end = EarlyEnd(reason="idle", since=at(1), at=at(2))
    inventory = ended_early(an_inventory(), end, now=at(5))
    machines = Ledger(spans=(a_span(0, "i-a"), a_span(1, "i-c")))
    for hours in (3.0, 11.0, 13.0):
        rows = cost_rows(inventory, machines, alive=frozenset(), now=at(hours))
        assert by_kind(rows)["node"].spent_usd == pytest.approx(2 * 2 * 55.04)
    assert (inventory.deadline, inventory.deadline_reason[:10]) == (at(2).isoformat(), "idle since")


def test_within_the_hour_after_the_deadline_the_reservation_may_still_bill() -> None:
    rows = cost_rows(an_inventory(), REPLACED, alive=frozenset(), now=at(12.5))
    assert [row.note for row in rows if row.slot is not None] == [TAIL, None, TAIL]


def test_a_machine_that_runs_on_after_the_deadline_bills_on() -> None:
    rows = cost_rows(an_inventory(), REPLACED, alive=frozenset({"i-a"}), now=at(14))
    first = rows[0]
    assert (first.note, first.ended_at) == (LATE, None)
    assert first.spent_usd == pytest.approx(14 * 55.04)


def test_an_unknown_price_makes_every_sum_with_it_unknown_and_never_0() -> None:
    ledger = Ledger(spans=(a_span(0, "i-a"), a_span(1, "i-b", price=None)))
    rows = cost_rows(an_inventory(), ledger, alive=None, now=at(1))
    assert sums(rows) == type(sums(rows))(spent_usd=None, usd_per_hour=None, at_deadline_usd=None)
    assert by_kind(rows)["storage"].spent_usd == pytest.approx(1.38)


def test_without_a_ledger_the_run_counts_from_its_start_and_says_so() -> None:
    rows = cost_rows(an_inventory(), None, alive=None, now=at(3))
    assert {row.note for row in rows if row.kind == "node"} == {NO_LEDGER}
    assert sums(rows).spent_usd == pytest.approx(3 * (2 * 55.04 + 0.01 + 1.38))


def test_a_cluster_that_is_down_costs_its_storage_alone() -> None:
    down = an_inventory(nodes=(), run_nodes_down=True, usd_per_hour=1.38, addresses_usd_per_hour=0.0)
    ended = Ledger(spans=(a_span(0, "i-a", 0, 2),))
    rows = cost_rows(down, ended, alive=frozenset(), now=at(5))
    assert sums(rows).usd_per_hour == pytest.approx(1.38)
    assert sums(rows).spent_usd == sums(rows).at_deadline_usd == pytest.approx(2 * 55.04 + 5 * 1.38)


def test_a_run_that_is_down_and_has_no_ledger_counts_none_of_its_nodes() -> None:
    rows = cost_rows(an_inventory(run_nodes_down=True), None, alive=None, now=at(3))
    assert [row for row in rows if row.kind in ("node", "empty")] == []


def an_empty_place(slot: int, *, start_h: float = 1, price: float | None = 10.0) -> CostRow:
    """A place in which nothing runs since that hour, three hours after the start."""
    return cost_row(
        kind="empty",
        name=f"train-{slot}",
        slot=slot,
        started_at=at(start_h),
        usd_per_hour=price,
        deadline=DEADLINE,
        now=at(3),
    )


def test_places_that_are_empty_at_the_same_time_make_one_row_with_the_price_of_all() -> None:
    alone = an_empty_place(2, start_h=2)
    together, last = folded([an_empty_place(0), an_empty_place(1), alone])
    assert (together.name, together.slot, together.usd_per_hour) == ("train-[0-1]", None, 20.0)
    assert (together.spent_usd, together.at_deadline_usd) == (40.0, 220.0)
    assert last == alone


BESIDE = tuple(
    Standing(kind=kind, started_at=BORN, ended_at=None, usd_per_hour=1.0)
    for kind in ("disks", "addresses", "gateway", "storage")
)


@pytest.mark.parametrize("automatic", [True, False])
def test_what_goes_with_machines_is_gone_with_the_last_one_and_what_stands_alone_bills_on(automatic: bool) -> None:
    ledger = Ledger(spans=(a_span(0, "i-a", 0, 2),), standing=BESIDE)
    inventory = an_inventory(addresses_go_with_machines=automatic)
    rows = cost_rows(inventory, ledger, alive=frozenset(), now=at(5))
    assert {row.kind: row.ended_at for row in rows if row.kind != "node"} == {
        "disks": at(2),
        "addresses": at(2) if automatic else None,
        "gateway": None,
        "storage": None,
    }


def test_a_way_out_that_aws_has_no_more_bills_until_the_last_machine_went() -> None:
    """What ends a cluster releases its addresses, too; a gateway that is left bills on."""
    ledger = Ledger(spans=(a_span(0, "i-a", 0, 2),), standing=BESIDE)
    rows = cost_rows(an_inventory(), ledger, alive=frozenset(), now=at(5), ways_out=frozenset({"gateway"}))
    assert {row.kind: row.ended_at for row in rows if row.kind in ("addresses", "gateway")} == {
        "addresses": at(2),
        "gateway": None,
    }


@pytest.mark.parametrize("keeps_data", [True, False])
def test_after_reap_only_data_bills_on_if_there_is_any(keeps_data: bool) -> None:
    end = EarlyEnd(reason=REAPED, since=None, at=at(2), keeps_data=keeps_data)
    ledger = Ledger(spans=(a_span(0, "i-a"),), standing=BESIDE)
    rows = cost_rows(
        ended_early(an_inventory(), end, now=at(5)),
        ledger,
        alive=frozenset(),
        now=at(5),
        is_reserved=False,
        over=ended_kinds(end),
    )
    assert [row.kind for row in rows if row.ended_at is None] == (["storage"] if keeps_data else [])


def test_storage_counts_over_all_runs_and_between_them_at_the_rate_it_had() -> None:
    earlier = Standing(kind="storage", started_at=at(-20), ended_at=at(0), usd_per_hour=2.0)
    now_standing = Standing(kind="storage", started_at=at(0), ended_at=None, usd_per_hour=1.38)
    ledger = Ledger(spans=(a_span(0, "i-a", -20, -19), a_span(0, "i-b")), standing=(earlier, now_standing))
    rows = cost_rows(an_inventory(run=2), ledger, alive=frozenset({"i-b"}), now=at(1))
    assert by_kind(rows)["storage"].spent_usd == pytest.approx(20 * 2.0 + 1.38)
    assert sums(rows).usd_per_hour == pytest.approx(55.04 + 1.38)
    assert "this is run 2" not in cost_text(a_view(inventory=an_inventory(run=2), ledger=ledger))


def test_what_runs_without_being_in_the_ledger_is_named() -> None:
    assert uncounted(REPLACED, frozenset({"i-a", "i-z"})) == ("i-z",)
    assert uncounted(REPLACED, None) == uncounted(None, frozenset({"i-z"})) == ()


def bill(ledger: Ledger, until: datetime, *, beside: Fraction) -> Fraction:
    """What is owed at `until`, exactly: whole seconds times an hourly price."""
    total = beside * Fraction(int((until - BORN).total_seconds()), 3600)
    for span in ledger.spans:
        seconds = int((min(span.ended_at or until, until) - span.started_at).total_seconds())
        total += Fraction(str(span.price_usd_per_hour)) * Fraction(max(0, seconds), 3600)
    return total


@settings(max_examples=150)
@given(ledger=ledgers(), seconds=SECONDS)
def test_the_estimate_is_the_bill_to_the_cent(ledger: Ledger, seconds: int) -> None:
    now = BORN + timedelta(seconds=seconds)
    total = sums(cost_rows(an_inventory(), ledger, alive=None, now=now))
    beside = Fraction("1.39")
    assert total.spent_usd is not None
    assert total.at_deadline_usd is not None
    assert abs(total.spent_usd - bill(ledger, now, beside=beside)) < CENT / 100
    assert abs(total.at_deadline_usd - bill(ledger, DEADLINE, beside=beside)) < CENT / 100


@settings(max_examples=50)
@given(ledger=ledgers(), seconds=SECONDS, more=SECONDS)
def test_time_never_makes_it_cheaper(ledger: Ledger, seconds: int, more: int) -> None:
    earlier, later = BORN + timedelta(seconds=seconds), BORN + timedelta(seconds=seconds + more)
    before, after = (sums(cost_rows(an_inventory(), ledger, alive=None, now=now)) for now in (earlier, later))
    assert (before.spent_usd or 0) <= (after.spent_usd or 0) + 1e-9
    assert (before.spent_usd or 0) <= (before.at_deadline_usd or 0) + 1e-9


@settings(max_examples=25)
@given(ledger=ledgers(all_run=True), seconds=SECONDS)
def test_the_plan_s_budget_and_the_bill_count_the_same_money(ledger: Ledger, seconds: int) -> None:
    """`cost` shows the sum that the deadline was computed from, computed apart, as long as every slot has a machine."""
    plan = a_plan(nodes=3)
    now = BORN + timedelta(seconds=seconds)
    beside = Standing(kind="addresses", started_at=BORN, ended_at=None, usd_per_hour=plan.price.addresses_usd_per_hour)
    ledger = dataclasses.replace(ledger, standing=(beside,))
    flow = expenses(plan.price, ledger, started_at=BORN, now=DEADLINE, nodes=3)
    inventory = an_inventory()
    assert flow is not None
    shown = sums(cost_rows(inventory, ledger, alive=None, now=now)).spent_usd
    assert shown == pytest.approx(spent_usd(flow, now), abs=CENT / 100)
