"""Money and time: the instant at which a budget is spent."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

import pytest
from clusterctl_infra.ledger import Ledger, Span
from clusterctl_infra.plan.deadline import Expense, expenses, spent_at, spent_usd
from clusterctl_infra.provider.ledger_change import Rates, follow
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.infra.plan.plan_cases import BORN, IDENTITY, a_plan

FEW = 25
"""Examples of a property that needs whole plans, 10 ms each."""
NODE_USD_PER_HOUR = 55.04
ADDRESS_USD_PER_HOUR = 0.005
DISK_USD_PER_HOUR = 0.08 / 730 * 200
GATEWAY_USD_PER_HOUR = 0.045
PUBLIC: Rates = {
    "disks": 4 * DISK_USD_PER_HOUR,
    "addresses": 4 * ADDRESS_USD_PER_HOUR,
    "gateway": 0.0,
    "storage": 0.0,
}
SECONDS = st.integers(min_value=0, max_value=10**6)
RATES = st.floats(min_value=0, max_value=500, allow_nan=False)


def private_rates(nodes: int) -> Rates:
    """Beside nodes without addresses: their disks, the NAT gateway and its address."""
    disks = nodes * DISK_USD_PER_HOUR
    return {"disks": disks, "addresses": ADDRESS_USD_PER_HOUR, "gateway": GATEWAY_USD_PER_HOUR, "storage": 0.0}


@st.composite
def flows(draw: st.DrawFn) -> list[Expense]:
    """Expenses that begin within two weeks; about half of them end."""
    rows = []
    for _ in range(draw(st.integers(min_value=1, max_value=8))):
        begin = BORN + timedelta(seconds=draw(SECONDS))
        end = begin + timedelta(seconds=draw(SECONDS)) if draw(st.booleans()) else None
        rows.append(Expense(started_at=begin, ended_at=end, usd_per_hour=draw(RATES)))
    return rows


@given(flow=flows(), budget_usd=st.floats(min_value=0.01, max_value=10**6))
def test_at_the_deadline_no_more_than_the_budget_is_spent_and_soon_after_more_would_be(
    flow: list[Expense], budget_usd: float
) -> None:
    at = spent_at(flow, budget_usd)
    if at is None:
        return
    assert spent_usd(flow, at) <= budget_usd * (1 + 1e-9)
    assert spent_usd(flow, at + timedelta(seconds=2)) >= budget_usd * (1 - 1e-9)


@given(flow=flows(), budget_usd=st.floats(min_value=1, max_value=10**5))
def test_more_money_never_ends_earlier(flow: list[Expense], budget_usd: float) -> None:
    less, more = spent_at(flow, budget_usd), spent_at(flow, budget_usd * 2)
    assert more is None or (less is not None and less <= more)


def test_money_that_stops_flowing_is_never_spent() -> None:
    flow = [Expense(started_at=BORN, ended_at=BORN + timedelta(hours=1), usd_per_hour=10)]
    assert spent_at(flow, 11) is None


def test_run_time_counts_from_the_start_of_the_run() -> None:
    deadline = a_plan(caps={"runtime": "3h"}).deadline
    assert (deadline.at, deadline.reason, deadline.budget_at) == (BORN + timedelta(hours=3), "runtime", None)


def test_a_budget_ends_the_cluster_when_it_is_spent() -> None:
    deadline = a_plan(caps={"runtime": "12h", "budget_usd": 1000}).deadline
    hours = 1000 / (4 * (NODE_USD_PER_HOUR + DISK_USD_PER_HOUR + ADDRESS_USD_PER_HOUR))
    assert deadline.reason == "budget"
    assert abs(deadline.at - (BORN + timedelta(hours=hours))) <= timedelta(seconds=1)


def test_a_budget_that_outlasts_the_run_time_is_shown_and_not_the_deadline() -> None:
    deadline = a_plan(caps={"runtime": "1h", "budget_usd": 1000}).deadline
    assert deadline.at == deadline.runtime_at
    assert deadline.budget_at is not None
    assert deadline.budget_at > deadline.at


def test_the_account_of_the_first_members_changes_no_deadline() -> None:
    caps = {"runtime": "12h", "budget_usd": 1000}
    before = a_plan(caps=caps).deadline
    account = members({0: "i-0", 1: "i-1", 2: "i-2", 3: "i-3"}, at=BORN + timedelta(minutes=5))
    assert a_plan(caps=caps, ledger=account, now=BORN + timedelta(hours=1)).deadline == before


@settings(max_examples=FEW)
@given(minutes=st.integers(min_value=1, max_value=200), nodes=st.integers(min_value=1, max_value=9))
def test_after_a_resize_the_account_says_what_the_plan_foretold(minutes: int, nodes: int) -> None:
    caps, private = {"runtime": "12h", "budget_usd": 1000}, {"mode": "private"}
    first = members({slot: f"i-{slot}" for slot in range(4)}, at=BORN, beside=private_rates(4))
    now = BORN + timedelta(minutes=minutes)
    foretold = a_plan(nodes=nodes, caps=caps, access=private, ledger=first, now=now).deadline
    account = members({slot: f"i-{slot}" for slot in range(nodes)}, at=now, ledger=first, beside=private_rates(nodes))
    later = a_plan(nodes=nodes, caps=caps, access=private, ledger=account, now=now + timedelta(hours=1)).deadline
    assert later == foretold


def test_a_replaced_machine_costs_what_the_one_before_would_have() -> None:
    caps = {"runtime": "12h", "budget_usd": 1000}
    first = members({slot: f"i-{slot}" for slot in range(4)}, at=BORN)
    at = BORN + timedelta(hours=1)
    account = members({0: "i-0", 1: "i-1", 2: "i-new", 3: "i-3"}, at=at, ledger=first)
    assert a_plan(caps=caps, ledger=account, now=at).deadline == a_plan(caps=caps).deadline


def test_nodes_that_join_later_do_not_pay_for_the_hours_before() -> None:
    caps, private = {"runtime": "12h", "budget_usd": 1000}, {"mode": "private"}
    first = members({0: "i-0"}, at=BORN, beside=private_rates(1))
    now = BORN + timedelta(hours=10)
    deadline = a_plan(nodes=2, caps=caps, access=private, ledger=first, now=now).deadline
    assert deadline.at > now


def test_run_time_counts_per_run_and_the_budget_over_all_runs() -> None:
    spent = Span(
        slot=0,
        instance_id="i-0",
        started_at=BORN - timedelta(hours=20),
        ended_at=BORN - timedelta(hours=10),
        price_usd_per_hour=90.0,
    )
    caps = {"runtime": "3h", "budget_usd": 1000}
    second = dataclasses.replace(IDENTITY, run=2)
    deadline = a_plan(caps=caps, ledger=Ledger(spans=(spent,)), identity=second).deadline
    assert deadline.runtime_at == BORN + timedelta(hours=3)
    assert deadline.reason == "budget"
    assert abs((deadline.at - BORN).total_seconds() / 3600 - 100 / (4 * (55.045 + DISK_USD_PER_HOUR))) < 0.001


def test_where_nothing_was_written_down_yet_all_counts_from_the_start_of_the_run() -> None:
    """An `up` that was cut off had made things by then: the sum errs on the high side."""
    later = BORN + timedelta(hours=2)
    flow = expenses(a_plan(access={"mode": "private"}).price, Ledger(), started_at=BORN, now=later, nodes=4)
    assert flow is not None
    assert {row.started_at for row in flow} == {BORN}
    written = members({0: "i-0"}, at=BORN, beside={"disks": 0.0, "addresses": 0.0, "gateway": 0.0, "storage": 0.0})
    after = expenses(a_plan(access={"mode": "private"}).price, written, started_at=BORN, now=later, nodes=4)
    assert after is not None
    assert {row.started_at for row in after if row.ended_at is None} == {BORN, later}


def test_a_machine_of_another_type_costs_the_plan_s_price_from_now_on() -> None:
    """So the deadline of the `up` that replaces it is not computed by the price of the machine that goes."""
    price = dataclasses.replace(a_plan(nodes=1).price, disks_usd_per_hour=0.0, addresses_usd_per_hour=0.0)
    small = Span(slot=0, instance_id="i-0", started_at=BORN, ended_at=None, price_usd_per_hour=6.88)
    now = BORN + timedelta(hours=2)
    flow = expenses(price, Ledger(spans=(small,)), started_at=BORN, now=now, nodes=1)
    assert flow is not None
    assert spent_usd(flow, now) == pytest.approx(2 * 6.88)
    assert spent_usd(flow, now + timedelta(hours=3)) == pytest.approx(2 * 6.88 + 3 * NODE_USD_PER_HOUR)
    caps = {"runtime": "8h", "budget_usd": 200}
    assert a_plan(nodes=1, caps=caps, ledger=Ledger(spans=(small,)), now=now).deadline.reason == "budget"


def test_storage_that_stays_while_no_node_runs_counts_in_the_next_run() -> None:
    beside: Rates = {"disks": 0.0, "addresses": 0.0, "gateway": 0.0, "storage": 10.0}
    first = members({0: "i-0"}, at=BORN - timedelta(hours=30), beside=beside, born=BORN - timedelta(hours=30))
    down = members({}, at=BORN - timedelta(hours=29), ledger=first, beside=beside)
    plan = a_plan(access={"mode": "private"}, caps={"budget_usd": 1000})
    price = dataclasses.replace(
        plan.price,
        disks_usd_per_hour=0.0,
        addresses_usd_per_hour=0.0,
        gateway_usd_per_hour=0.0,
        storage_usd_per_hour=10.0,
    )
    flow = expenses(price, down, started_at=BORN, now=BORN, nodes=4)
    assert flow is not None
    assert spent_usd(flow, BORN) == pytest.approx(NODE_USD_PER_HOUR + 30 * 10.0)
    assert spent_usd(flow, BORN + timedelta(hours=1)) == pytest.approx(5 * NODE_USD_PER_HOUR + 31 * 10.0)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Ledger, datetime]:
    """An account as some changes of a cluster left it, replacements, resizes and pauses, and when the last one was."""
    account, at, machine = Ledger(), BORN, 0
    for _ in range(draw(st.integers(min_value=1, max_value=6))):
        at += timedelta(seconds=draw(st.integers(min_value=1, max_value=40_000)))
        running = {span.slot: span.instance_id for span in account.spans if span.ended_at is None}
        slots = {}
        for slot in range(draw(st.integers(min_value=0, max_value=4))):
            is_new = slot not in running or draw(st.booleans())
            machine += is_new
            slots[slot] = f"i-{machine}" if is_new else running[slot]
        storage = draw(st.sampled_from([0.0, 1.38, 10.0]))
        beside = {**private_rates(len(slots)), "addresses": 0.005 * len(slots), "gateway": 0.0, "storage": storage}
        account = members(slots, at=at, ledger=account, beside=beside, born=at)
    return account, at


@settings(max_examples=60)
@given(history=histories(), seconds=SECONDS, nodes=st.integers(min_value=1, max_value=4), usd=st.integers(1, 3000))
def test_whatever_happened_before_the_money_at_the_deadline_is_the_budget(
    history: tuple[Ledger, datetime], seconds: int, nodes: int, usd: int
) -> None:
    """The plan of a change, and the plan an hour after it was written into the account, see the same end."""
    account, last = history
    now = last + timedelta(seconds=seconds)
    price = dataclasses.replace(
        a_plan(nodes=1).price,
        node_usd_per_hour=NODE_USD_PER_HOUR,
        disks_usd_per_hour=nodes * DISK_USD_PER_HOUR,
        addresses_usd_per_hour=0.005 * nodes,
    )
    flow = expenses(price, account, started_at=now, now=now, nodes=nodes)
    assert flow is not None
    already = spent_usd(flow, now)
    at = spent_at(flow, already + usd)
    assert at is not None
    assert spent_usd(flow, at) <= already + usd + 1e-6
    assert spent_usd(flow, at + timedelta(seconds=5)) > already + usd
    running = {span.slot: span.instance_id for span in account.spans if span.ended_at is None}
    slots = {slot: running.get(slot, f"i-new-{slot}") for slot in range(nodes)}
    beside: Rates = {**private_rates(nodes), "addresses": 0.005 * nodes, "gateway": 0.0}
    written = members(slots, at=now, ledger=account, beside=beside, born=now)
    after = expenses(price, written, started_at=now, now=now + timedelta(hours=1), nodes=nodes)
    assert after is not None
    assert spent_at(after, already + usd) == at


def test_four_dear_nodes_with_a_small_budget_end_at_the_computed_second() -> None:
    """That nodes have this deadline in their files: tests/integration/lifecycle/test_budget_ends_nodes.py."""
    deadline = a_plan(nodes=4, access={"mode": "private"}, caps={"runtime": "1h", "budget_usd": 4}).deadline
    seconds = 4 / (4 * (NODE_USD_PER_HOUR + DISK_USD_PER_HOUR) + ADDRESS_USD_PER_HOUR + GATEWAY_USD_PER_HOUR) * 3600
    assert deadline.reason == "budget"
    assert deadline.at == BORN + timedelta(seconds=int(seconds))


@pytest.mark.parametrize(("hours", "reason"), [(1, "extend"), (30, "budget")])
def test_a_moved_end_stands_for_the_run_time_and_the_budget_still_wins(hours: int, reason: str) -> None:
    until = BORN + timedelta(hours=hours)
    moved = a_plan(caps={"runtime": "12h"}, until=until).deadline
    assert (moved.at, moved.reason) == (until, "extend")
    spent = a_plan(caps={"runtime": "12h", "budget_usd": 1000}).deadline.at
    capped = a_plan(caps={"runtime": "12h", "budget_usd": 1000}, until=until).deadline
    assert (capped.at, capped.reason) == (until if reason == "extend" else spent, reason)


def test_an_unknown_price_makes_no_account() -> None:
    made = a_plan(caps={"budget_usd": 1000})
    unknown = dataclasses.replace(made.price, node_usd_per_hour=None)
    assert expenses(unknown, Ledger(), started_at=BORN, now=BORN, nodes=4) is None


def members(
    slots: dict[int, str], *, at: datetime, ledger: Ledger | None = None, beside: Rates = PUBLIC, born: datetime = BORN
) -> Ledger:
    """The account as Membership would write it."""
    return follow(
        Ledger() if ledger is None else ledger,
        slots,
        beside,
        at=at,
        ends_by=None,
        run_started_at=born,
        price_usd_per_hour=NODE_USD_PER_HOUR,
    ).ledger
