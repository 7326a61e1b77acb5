"""Two p5 nodes with public addresses and a file system, and ledgers of what such a cluster paid."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any  # fields of an inventory

from clusterctl.cost.view import CostView
from clusterctl_infra.ledger import Ledger, Span
from clusterctl_infra.outputs import Inventory
from hypothesis import strategies as st

from tests.inventories import make_inventory
from tests.unit.infra.plan.plan_cases import IDENTITY

BORN = IDENTITY.started_at
DEADLINE = BORN + timedelta(hours=12)


def an_inventory(**changes: object) -> Inventory:
    """Two p5 nodes with public addresses and a file system, ending after twelve hours."""
    facts: dict[str, Any] = {
        "started_at": BORN.isoformat(),
        "deadline": DEADLINE.isoformat(),
        "usd_per_hour": 2 * 55.04 + 0.01 + 1.38,
        "budget_usd": 1000.0,
        "generation": 1,
        "nodes": tuple(replace(node, instance_id=None) for node in make_inventory(size=2).nodes),
        "disks_usd_per_hour": 0.0,
        "addresses_usd_per_hour": 0.01,
        "gateway_usd_per_hour": 0.0,
        "storage_usd_per_hour": 1.38,
        "prices_dated": "2026-01",
    }
    return make_inventory(**{"owner": "ada", **facts, **changes})


def a_span(slot: int, id: str, start_h: float = 0, end_h: float | None = None, price: float | None = 55.04) -> Span:
    return Span(
        slot=slot,
        instance_id=id,
        started_at=BORN + timedelta(hours=start_h),
        ended_at=None if end_h is None else BORN + timedelta(hours=end_h),
        price_usd_per_hour=price,
    )


REPLACED = Ledger(spans=(a_span(0, "i-a"), a_span(1, "i-b", 0, 1), a_span(1, "i-c", 1)))
ALL = frozenset({"i-a", "i-c"})


def at(hours: float) -> datetime:
    return BORN + timedelta(hours=hours)


PRICES = st.sampled_from([0.0116, 1.006, 21.957642, 55.04, 113.933])
SECONDS = st.integers(min_value=0, max_value=12 * 3600)
STARTS = st.integers(min_value=0, max_value=12 * 3600 - 60)
"""No machine of the ledger ends after the deadline."""


@st.composite
def ledgers(draw: st.DrawFn, *, all_run: bool = False) -> Ledger:
    """Machines that follow each other in three slots; the last of each may still run, with `all_run` it does."""
    spans = []
    for slot in range(3):
        marks = sorted(draw(st.lists(STARTS, min_size=1, max_size=5, unique=True)))
        for number, begin in enumerate(marks):
            last = number == len(marks) - 1
            end = None if last and (all_run or draw(st.booleans())) else (marks[number + 1] if not last else begin + 60)
            spans.append(
                Span(
                    slot=slot,
                    instance_id=f"i-{slot}-{number}",
                    started_at=BORN + timedelta(seconds=begin),
                    ended_at=None if end is None else BORN + timedelta(seconds=end),
                    price_usd_per_hour=draw(PRICES),
                )
            )
    return Ledger(spans=tuple(spans))


def a_view(**changes: object) -> CostView:
    facts: dict[str, Any] = {
        "inventory": an_inventory(),
        "ledger": REPLACED,
        "alive": ALL,
        "cloud_trouble": None,
        "now": at(3),
    }
    return CostView(**{**facts, **changes})
