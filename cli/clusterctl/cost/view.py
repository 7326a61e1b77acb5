"""The screen of `clusterctl cost`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from clusterctl_infra.ledger import Ledger, StandingKind
from clusterctl_infra.outputs import Inventory

from clusterctl.cloud.spot_history import SpotPriceChange
from clusterctl.cost.cost_row import CostRow, Sums, by_kind, sums
from clusterctl.cost.estimate import NOT_COUNTED, cost_rows, uncounted
from clusterctl.cost.sighting import NOTHING_OBSERVED, Observed
from clusterctl.cost.sources import cloud_name, reserved_unknown
from clusterctl.cost.spot_bill import machines_at_spot_usd, spot_machines
from clusterctl.text.headline import about, ends, rehearsed
from clusterctl.text.next_commands import up_again
from clusterctl.text.quantities import clock, rounded, usd
from clusterctl.text.table import render_table

ASSUMED = "~"
MAXIMUM = "spot machines are counted at their maximum price, the most that AWS bills; it bills the spot price"


@dataclass(frozen=True, kw_only=True)
class CostView:
    """What one look at a cluster's cost found."""

    inventory: Inventory
    ledger: Ledger | None
    alive: frozenset[str] | None
    cloud_trouble: str | None
    """Why `alive` is not known."""
    now: datetime
    observed: Observed = NOTHING_OBSERVED
    is_reserved: bool | None = None
    """Whether AWS holds places for machines; None: not known."""
    reserved_trouble: str | None = None
    """Why `is_reserved` is not known."""
    over: Mapping[StandingKind, datetime] = field(default_factory=dict)
    """The kinds of things beside machines that are gone, and since when."""
    ways_out: frozenset[StandingKind] | None = None
    """Which of elastic IPs and the NAT gateway AWS still has; None: machines live, or it did not say."""
    spot_prices: tuple[SpotPriceChange, ...] | None = None
    """The prices of machines like the cluster's, in its zone, since its first one; None: not asked, or not known."""
    spot_trouble: str | None = None
    """Why `spot_prices` are not known."""

    @property
    def rows(self) -> tuple[CostRow, ...]:
        """The estimated bill."""
        return cost_rows(
            self.inventory,
            self.ledger,
            alive=self.alive,
            now=self.now,
            observed=self.observed,
            is_reserved=self.is_reserved,
            over=self.over,
            ways_out=self.ways_out,
        )

    @property
    def machines_at_spot_usd(self) -> float | None:
        """What the machines have cost by `spot_prices`; None: not known."""
        if self.spot_prices is None:
            return None
        return machines_at_spot_usd(
            self.rows,
            self.spot_prices,
            on_spot=spot_machines(self.observed, self.inventory.instance_type, now=self.now),
            now=self.now,
        )


def cost_text(seen: CostView) -> str:
    """The whole screen: the sums, a row for each thing that bills, what is an estimate and why."""
    inventory, now, rows = seen.inventory, seen.now, seen.rows
    total = sums(rows)
    budget = "" if inventory.budget_usd is None else f" of {usd(inventory.budget_usd)}"
    at_end = f"{_about(inventory, total.at_deadline_usd)} when it ends"
    parts = [inventory.name, f"{_about(inventory, total.spent_usd)} so far{budget}", f"{usd(total.usd_per_hour)}/h now"]
    parts += [] if inventory.run_nodes_down else [at_end, ends(inventory, now)]
    title = " · ".join(parts) + rehearsed(inventory.rehearsal, inventory.gpus_per_node > 0)
    header = ["what", "machine", "from", "until", "$/h", "so far", "at the end", "note"]
    table = [
        *([*_cells(row, now), row.note or ""] for row in rows),
        *(
            [f"all {kind}s" if kind == "node" else f"all {kind}", "", "", "", *_sum_cells(kind_sums), ""]
            for kind, kind_sums in by_kind(rows).items()
            if sum(row.kind == kind for row in rows) > 1
        ),
    ]
    rendered = render_table(header, table, right={"$/h", "so far", "at the end"})
    return "\n".join([title, rendered, *(f"  {remark}" for remark in remarks(seen))])


def cost_json(seen: CostView) -> dict[str, object]:
    """What `clusterctl cost --json` prints; what is not known is null."""
    inventory, rows = seen.inventory, seen.rows
    return {
        "cluster": inventory.cluster,
        "cluster_id": inventory.cluster_id,
        "rehearsal": inventory.rehearsal,
        "simulated": inventory.rehearsal,
        "at": seen.now.isoformat(),
        "deadline": inventory.deadline,
        "deadline_reason": inventory.deadline_reason,
        "budget_usd": inventory.budget_usd,
        "estimated_cost": {
            **_sums_json(sums(rows)),
            "prices_dated": inventory.prices_dated,
            "not_counted": list(NOT_COUNTED),
            "is_maximum": inventory.capacity == "spot",
            "machines_at_spot_usd": rounded(seen.machines_at_spot_usd),
        },
        "kinds": {kind: _sums_json(kind_sums) for kind, kind_sums in by_kind(rows).items()},
        "rows": [_row_json(row) for row in rows],
        "uncounted": list(uncounted(seen.ledger, seen.alive)),
        "cloud": {
            "answered": seen.alive is not None,
            "trouble": seen.cloud_trouble,
            "reserved": seen.is_reserved,
            "reserved_trouble": seen.reserved_trouble,
        },
    }


def remarks(seen: CostView) -> list[str]:
    """The reasons why the sums are an estimate."""
    inventory = seen.inventory
    money = "simulated money, at AWS's list prices" if inventory.rehearsal else "an estimate from AWS's list prices"
    dated = "" if inventory.prices_dated is None else f" of {inventory.prices_dated}"
    lines = [f"{money}{dated}; not in it: {', '.join(NOT_COUNTED)}"]
    lines += _what_spot_costs(seen) if inventory.capacity == "spot" else []
    lines.append(_what_is_assumed(inventory))
    if inventory.prices_dated is None:
        older = "an older clusterctl did the last up"
        lines.append(f"disks, addresses and storage are not counted: {older}; next: {up_again(inventory)}")
    if seen.ledger is None:
        lines.append("this computer has no ledger of the cluster: earlier sizes, replacements and runs are not counted")
    if inventory.run > 1 and (seen.ledger is None or not seen.ledger.standing):
        lines.append(
            f"this is run {inventory.run}: disks, addresses and storage count from its start, machines from the first"
        )
    if seen.cloud_trouble is not None:
        lines.append(
            f"{cloud_name(inventory)} did not say what runs ({seen.cloud_trouble}): "
            "what runs now is taken from the ledger"
        )
    if seen.cloud_trouble is None and seen.reserved_trouble is not None:
        lines.append(reserved_unknown(inventory, seen.reserved_trouble))
    if more := uncounted(seen.ledger, seen.alive):
        lines.append(
            f"runs, but its cost is not counted in the deadline: {', '.join(more)}; next: {up_again(inventory)}"
        )
    return lines


def _what_spot_costs(seen: CostView) -> list[str]:
    zone, found = seen.inventory.zone, seen.machines_at_spot_usd
    if found is not None:
        return [MAXIMUM, f"by the spot prices of {zone} machines have cost about {usd(found)} so far"]
    why = "" if seen.spot_trouble is None else f" ({seen.spot_trouble})"
    return [MAXIMUM, f"what they have cost by the spot prices of {zone} is not known{why}"]


def _what_is_assumed(inventory: Inventory) -> str:
    return (
        f"{ASSUMED} before a time: assumed from this computer's ledger; all other times are {cloud_name(inventory)}'s"
    )


def _cells(row: CostRow, now: datetime) -> list[str]:
    began = _assumed(row.is_start_seen) + clock(row.started_at, now)
    until = "" if row.ended_at is None else _assumed(row.is_end_seen) + clock(row.ended_at, now)
    return [row.name, row.instance_id or "", began, until, *_row_sums(row)]


def _assumed(is_seen: bool) -> str:
    return "" if is_seen else ASSUMED


def _row_sums(row: CostRow) -> list[str]:
    return [usd(row.usd_per_hour_now), usd(row.spent_usd), usd(row.at_deadline_usd)]


def _sum_cells(total: Sums) -> list[str]:
    return [usd(total.usd_per_hour), usd(total.spent_usd), usd(total.at_deadline_usd)]


def _about(inventory: Inventory, amount: float | None) -> str:
    return "cost unknown" if amount is None else f"{about(inventory)} {usd(amount)}"


def _sums_json(total: Sums) -> dict[str, float | None]:
    return {
        "spent_usd": rounded(total.spent_usd),
        "usd_per_hour": rounded(total.usd_per_hour),
        "at_deadline_usd": rounded(total.at_deadline_usd),
    }


def _row_json(row: CostRow) -> dict[str, object]:
    return {
        "kind": row.kind,
        "name": row.name,
        "slot": row.slot,
        "instance_id": row.instance_id,
        "started_at": row.started_at.isoformat(),
        "ended_at": None if row.ended_at is None else row.ended_at.isoformat(),
        "start": _source(row.is_start_seen),
        "end": None if row.ended_at is None else _source(row.is_end_seen),
        "usd_per_hour": rounded(row.usd_per_hour_now),
        "spent_usd": rounded(row.spent_usd),
        "at_deadline_usd": rounded(row.at_deadline_usd),
        "note": row.note,
    }


def _source(is_seen: bool) -> str:
    return "observed" if is_seen else "assumed"
