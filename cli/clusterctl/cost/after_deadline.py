"""What no deadline ends: file systems bill until a person ends them."""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl_infra.ledger import StandingKind
from clusterctl_infra.outputs import Inventory
from clusterctl_infra.plan.model import ClusterPlan
from clusterctl_infra.plan.storage_model import is_retained

from clusterctl.cost.standing_rows import WAYS_OUT, assumed_rates
from clusterctl.text.quantities import UNKNOWN, usd

HOURS_A_MONTH = 730
"""A twelfth of a year of 365 days."""


def bills_on_after(plan: ClusterPlan) -> str | None:
    """`$1.45 an hour: storage; the deadline does not end it, clusterctl down does`; None: nothing bills then."""
    on = _bills_on({"storage": plan.price.storage_usd_per_hour})
    return None if on is None else f"{on}; {_what_ends_it(plan)}"


def bills_a_month_after(plan: ClusterPlan) -> str | None:
    """`$1058.50 a month: storage; the deadline does not end it, clusterctl down does`; None: nothing bills then."""
    rate = plan.price.storage_usd_per_hour
    on = _bills_on({"storage": None if rate is None else HOURS_A_MONTH * rate}, per="month")
    return None if on is None else f"{on}; {_what_ends_it(plan)}"


def _what_ends_it(plan: ClusterPlan) -> str:
    # A plain `down` leaves data that is to be kept.
    is_kept = any(is_retained(row) for row in plan.storage)
    return f"the deadline does not end it, clusterctl down{' --all' if is_kept else ''} does"


def bills_on_now(inventory: Inventory, *, ways_out: frozenset[StandingKind] | None) -> str | None:
    """What still bills of a cluster whose time is over, such as `$0.05 an hour: addresses, gateway`.

    None: nothing does, or the cluster's last `up` did not write down prices. `ways_out`: which of elastic IPs and the
    NAT gateway AWS still has; None: it did not say.
    """
    if inventory.prices_dated is None:
        return None
    gone: set[StandingKind] = {"disks", "addresses"} if inventory.addresses_go_with_machines else {"disks"}
    if ways_out is not None:
        gone |= {kind for kind in WAYS_OUT.values() if kind not in ways_out}
    return _bills_on({kind: rate for kind, rate in assumed_rates(inventory).items() if kind not in gone})


def _bills_on(rates: Mapping[StandingKind, float | None], *, per: str = "hour") -> str | None:
    billing = {kind: rate for kind, rate in rates.items() if rate != 0}
    known = [rate for rate in billing.values() if rate is not None]
    total = usd(sum(known)) if len(known) == len(billing) else UNKNOWN
    return f"{total} {'an' if per == 'hour' else 'a'} {per}: {', '.join(billing)}" if billing else None
