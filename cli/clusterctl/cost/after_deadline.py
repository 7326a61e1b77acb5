"""What no deadline ends: that ends machines and reservations, and all else bills until somebody comes."""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl_infra.outputs import Inventory
from clusterctl_infra.plan.model import ClusterPlan
from clusterctl_infra.plan.storage_model import is_retained

from clusterctl.cost.standing_rows import assumed_rates
from clusterctl.text.quantities import UNKNOWN, usd

HOURS_A_MONTH = 730
"""A twelfth of a year of 365 days."""


def bills_on_after(plan: ClusterPlan) -> str | None:
    """`$1.45 an hour: addresses, storage; the deadline does not end it, clusterctl down does`; None: nothing does."""
    on = _bills_on(_rates_after(plan))
    return None if on is None else f"{on}; {_what_ends_it(plan)}"


def bills_a_month_after(plan: ClusterPlan) -> str | None:
    """`$36.50 a month: addresses, gateway; the deadline does not end it, clusterctl down does`; None: nothing does."""
    rates = {kind: None if rate is None else HOURS_A_MONTH * rate for kind, rate in _rates_after(plan).items()}
    on = _bills_on(rates, per="month")
    return None if on is None else f"{on}; {_what_ends_it(plan)}"


def _rates_after(plan: ClusterPlan) -> Mapping[str, float | None]:
    """In US dollars an hour."""
    price = plan.price
    return {
        "addresses": 0.0 if plan.network.public_addresses == "automatic" else price.addresses_usd_per_hour,
        "gateway": price.gateway_usd_per_hour,
        "storage": price.storage_usd_per_hour,
    }


def _what_ends_it(plan: ClusterPlan) -> str:
    # With data that is kept, a `down` keeps the network, too.
    is_kept = any(is_retained(row) for row in plan.storage)
    return f"the deadline does not end it, clusterctl down{' --all' if is_kept else ''} does"


def bills_on_now(inventory: Inventory) -> str | None:
    """`$0.05 an hour: addresses, gateway` of a cluster whose time is over; None too where its last `up` did not say."""
    if inventory.prices_dated is None:
        return None
    rates: dict[str, float | None] = {kind: rate for kind, rate in assumed_rates(inventory).items() if kind != "disks"}
    return _bills_on({**rates, "addresses": 0.0} if inventory.addresses_go_with_machines else rates)


def _bills_on(rates: Mapping[str, float | None], *, per: str = "hour") -> str | None:
    billing = {kind: rate for kind, rate in rates.items() if rate != 0}
    known = [rate for rate in billing.values() if rate is not None]
    total = usd(sum(known)) if len(known) == len(billing) else UNKNOWN
    return f"{total} {'an' if per == 'hour' else 'a'} {per}: {', '.join(billing)}" if billing else None
