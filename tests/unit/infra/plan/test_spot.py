"""Machines on AWS's spare capacity: their maximum price, and what is counted by it."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from decimal import Decimal
from typing import Any  # configurations as YAML gives them

import pytest
from clusterctl_infra.catalog.reader import Catalog, Price
from clusterctl_infra.ledger import Ledger, Span
from clusterctl_infra.plan.deadline import expenses, spent_usd
from clusterctl_infra.plan.inventory import inventory
from clusterctl_infra.plan.model import ClusterPlan
from clusterctl_infra.plan.planner import plan
from clusterctl_infra.plan.spot import spot_price
from clusterctl_infra.replaceable import birth_facts, late_facts
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.infra.plan.plan_cases import BORN, CATALOG, IDENTITY, a_config, a_plan, problems_of

ON_DEMAND, LIST_SPOT = 55.04, 12.6935
PRICES = st.floats(min_value=0.002, max_value=1000, allow_nan=False)
MAYBE = st.none() | PRICES
FEW = 25
"""Examples of a property that needs whole plans, 10 ms each."""


def a_spot_plan(caps: dict[str, Any] | None = None, *, catalog: Catalog = CATALOG, **changes: Any) -> ClusterPlan:
    config = a_config(capacity="spot", caps=caps or {}, **changes)
    return plan(config, catalog, identity=IDENTITY, ledger=Ledger(), now=BORN)


def priced(on_demand: float | None, spot: float | None) -> Catalog:
    """A catalog that knows these prices alone."""
    price = Price(on_demand_usd_per_hour=on_demand, spot_usd_per_hour=spot)
    return dataclasses.replace(CATALOG, prices={("p5.48xlarge", "us-west-2"): price})


@pytest.mark.parametrize(
    ("cap", "on_demand", "maximum", "text"),
    [
        (None, 55.04, 55.04, "55.04"),
        (20, 55.04, 20, "20"),
        (60, 55.04, 55.04, "55.04"),
        (20, None, 20, "20"),
        (None, None, None, None),
        (0.0104, None, 0.0104, "0.0104"),
        (1.23456789, None, 1.234567, "1.234567"),
        (0.00123456789, None, 0.001234, "0.001234"),
        (1000, None, 1000, "1000"),
    ],
)
def test_the_maximum_is_the_cap_and_never_more_than_on_demand(
    cap: float | None, on_demand: float | None, maximum: float | None, text: str | None
) -> None:
    made = spot_price(cap_usd_per_hour=cap, on_demand_usd_per_hour=on_demand, list_usd_per_hour=None)
    assert (made.max_usd_per_hour, made.max_price) == (maximum, text)


@given(cap=MAYBE, on_demand=MAYBE)
def test_aws_is_told_what_is_counted_and_neither_is_above_the_cap_or_on_demand(
    cap: float | None, on_demand: float | None
) -> None:
    made = spot_price(cap_usd_per_hour=cap, on_demand_usd_per_hour=on_demand, list_usd_per_hour=None)
    bounds = [price for price in (cap, on_demand) if price is not None]
    assert (made.max_price is None) == (made.max_usd_per_hour is None) == (not bounds)
    if made.max_price is None or made.max_usd_per_hour is None:
        return
    assert set(made.max_price) <= set("0123456789.")
    assert Decimal(made.max_price) == Decimal(str(made.max_usd_per_hour))
    assert all(made.max_usd_per_hour <= bound for bound in bounds)
    assert min(bounds) - made.max_usd_per_hour < 1e-6


@settings(max_examples=FEW, deadline=None)
@given(cap=MAYBE, on_demand=MAYBE, paid=st.floats(min_value=0, max_value=1), hours=st.integers(1, 200))
def test_a_budget_ends_a_spot_cluster_before_its_machines_can_have_cost_more(
    cap: float | None, on_demand: float | None, paid: float, hours: int
) -> None:
    caps = {"budget_usd": 500, "runtime": f"{hours}h", **({} if cap is None else {"price_usd_per_hour": cap})}
    made = a_spot_plan(caps, catalog=priced(on_demand, None))
    maximum = made.price.node_usd_per_hour
    if maximum is None:
        assert "cannot be kept" in problems_of(made)["caps.budget_usd"]
        return
    assert made.price.nodes_usd_per_hour == 4 * maximum
    lived = max(timedelta(0), made.deadline.at - BORN) / timedelta(hours=1)
    assert 4 * maximum * paid * lived <= 500 * (1 + 1e-9)


def test_a_machine_that_was_made_for_another_maximum_counts_at_that_one() -> None:
    made = a_spot_plan({"price_usd_per_hour": 20})
    span = Span(slot=0, instance_id="i-0", started_at=BORN, ended_at=None, price_usd_per_hour=30)
    flow = expenses(made.price, Ledger(spans=(span,)), started_at=BORN, now=BORN, nodes=2)
    assert flow is not None
    beside = made.price.total_usd_per_hour
    assert beside is not None
    beside -= 4 * 20
    assert spent_usd(flow, BORN + timedelta(hours=1)) == pytest.approx(30 + 20 + beside)


def test_a_spot_plan_reserves_nothing_so_nothing_bills_after_its_deadline() -> None:
    made = a_spot_plan()
    assert (made.capacity, a_plan().capacity) == ("spot", "on-demand")
    assert (made.price.node_usd_per_hour, made.price.reservation_tail_usd) == (ON_DEMAND, 0.0)
    assert made.price.spot is not None
    assert made.price.spot.list_usd_per_hour == LIST_SPOT
    assert inventory(a_config(capacity="spot"), made, account_id="123456789012").capacity == "spot"


def test_a_maximum_below_the_spot_price_is_a_warning_with_both_numbers() -> None:
    made = a_spot_plan({"price_usd_per_hour": 10})
    assert problems_of(made) == {}
    warning = problems_of(made, "warning")["caps.price_usd_per_hour"]
    assert warning.startswith("$10.00 is less than a spot p5.48xlarge in us-west-2 cost, $12.69 (2026-01)")
    assert "clusterctl prices refresh --region us-west-2 p5.48xlarge" in warning
    assert a_spot_plan({"price_usd_per_hour": 13}).problems == a_spot_plan().problems == ()


def test_a_maximum_that_aws_does_not_take_is_an_error() -> None:
    assert "above $0.001" in problems_of(a_spot_plan({"price_usd_per_hour": 0.001}))["caps.price_usd_per_hour"]


def test_a_cap_makes_an_unknown_price_known() -> None:
    nothing = priced(None, None)
    assert a_spot_plan(catalog=nothing).price.total_usd_per_hour is None
    assert a_spot_plan({"price_usd_per_hour": 20}, catalog=nothing).price.nodes_usd_per_hour == 80


def test_a_type_that_is_not_sold_as_spot_is_an_error() -> None:
    kind = dataclasses.replace(CATALOG.types["p5.48xlarge"], usage_classes=("on-demand", "capacity-block"))
    catalog = dataclasses.replace(CATALOG, types={**CATALOG.types, "p5.48xlarge": kind})
    problem = problems_of(a_spot_plan(catalog=catalog))["capacity"]
    assert problem == "spot: AWS sells p5.48xlarge only as on-demand, capacity-block"


def test_another_maximum_replaces_no_machine_and_waits_for_the_next_one() -> None:
    before, after = a_spot_plan({"price_usd_per_hour": 20}), a_spot_plan({"price_usd_per_hour": 30})
    assert [slot.replacement_trigger for slot in before.slots] == [slot.replacement_trigger for slot in after.slots]
    assert late_facts(before.birth, after.birth) == ("spot-max",)
    assert "spot-max" not in birth_facts(a_plan().birth)


def test_machines_that_run_with_a_higher_maximum_are_named() -> None:
    spans = tuple(
        Span(slot=slot, instance_id=f"i-{slot}", started_at=BORN, ended_at=ended_at, price_usd_per_hour=price)
        for slot, price, ended_at in ((0, 10, None), (1, 30, None), (2, 50, BORN))
    )
    config = a_config(capacity="spot", caps={"price_usd_per_hour": 20})
    made = plan(config, CATALOG, identity=IDENTITY, ledger=Ledger(spans=spans), now=BORN)
    warning = problems_of(made, "warning")["caps.price_usd_per_hour"]
    assert warning.startswith("$20.00 holds for machines made from now on")
    assert warning.endswith("up to $30.00"), "the highest of those that run"
    ended = Ledger(spans=tuple(dataclasses.replace(span, ended_at=BORN) for span in spans))
    assert plan(config, CATALOG, identity=IDENTITY, ledger=ended, now=BORN).problems == ()


def test_with_a_dead_man_a_slot_0_that_aws_took_back_ends_the_others_and_a_plan_says_so() -> None:
    warning = problems_of(a_spot_plan({"dead_man": "30m"}), "warning")["caps.dead_man"]
    assert warning.startswith("30m: AWS may take slot 0 back")
    assert a_spot_plan({"dead_man": "30m"}, nodes=1).problems[-1].message.startswith("one node has no others")
    assert problems_of(a_plan(caps={"dead_man": "30m"}), "warning") == {}


def test_a_key_of_the_accounts_own_needs_a_grant_for_the_role_that_starts_spot_machines() -> None:
    key = "arn:aws:kms:us-west-2:123456789012:key/1a2b3c4d-5e6f-7a8b-9c0d-1e2f3a4b5c6d"
    warning = problems_of(a_spot_plan(kms_key=key), "warning")["kms_key"]
    assert (
        f"aws kms create-grant --region us-west-2 --key-id {key} --grantee-principal arn:aws:iam::ACCOUNT:role/"
        in warning
    )
    assert "kms_key" not in problems_of(a_spot_plan(), "warning")
    assert "kms_key" not in problems_of(a_plan(kms_key=key), "warning")
