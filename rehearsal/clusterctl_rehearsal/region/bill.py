"""The simulated bill: what AWS would charge for everything that was ever made here: list prices, by the second. Pure.

Computed from what the region did, and from nothing that clusterctl wrote down. As on AWS, an instance in a reservation
bills as an instance, and the empty places of the reservation bill as if they were full. A capacity block bills its
price once, when it is bought, and its instances bill only their disks. A spot machine bills the region's spot
price, which does not move here. Seconds are whole ones, as AWS shows and bills them. Left out are AWS's minimum of a
minute for each launch, traffic, what file systems and buckets hold, and that a spot machine is free if AWS interrupts
it in its first hour (EC2 User Guide, "Billing for interrupted Spot Instances"; 2026-11-22).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from clusterctl_infra.catalog.reader import Catalog

from clusterctl_rehearsal.region.capacity import CAPACITY_BLOCK
from clusterctl_rehearsal.region.journal import ADDRESS, INSTANCE, RESERVATION, billed_facts, bills
from clusterctl_rehearsal.region.record import Properties, Record
from clusterctl_rehearsal.region.spot import SPOT

HOUR_S = 3600.0
ROOT_DISK = "RootDisk"
"""The kind of the bill's rows about root disks."""


@dataclass(frozen=True, kw_only=True)
class Billed:
    """One thing that bills, or did; times are seconds since 1970."""

    id: str
    token: str
    region: str
    cluster_id: str | None
    began_at: float
    ended_at: float | None
    """None while it exists."""
    instance_type: str | None
    reservation: str | None
    market: str | None = None
    """Of an instance: `spot`, `capacity-block`, or none."""
    counts: tuple[tuple[float, int], ...] = field(default=())
    """Of a reservation: (instant, how many places it had from then on)."""
    disk_gib: int = 0
    """Of an instance: the size of its root disk (gp3), which bills beside the instance and ends with it."""
    upfront_usd: float | None = None
    """Of a capacity block: its price, paid when it was bought. None: it bills by the hour."""


@dataclass(frozen=True, kw_only=True)
class BillRow:
    """What one thing has cost. `usd` is None if its price is not known."""

    id: str
    kind: str
    cluster_id: str | None
    began_at: float
    ended_at: float | None
    usd: float | None


def billed_things(journal: Iterable[Properties], living: Iterable[Record]) -> tuple[Billed, ...]:
    """Everything that ever billed, from the journal's lines and the records of what exists."""
    lines: dict[str, list[Properties]] = {}
    for row in journal:
        lines.setdefault(row["id"], []).append(row)
    here = {record.id: record for record in living if bills(record)}
    gone = [_gone(rows) for id, rows in lines.items() if id not in here and rows[-1]["what"] == "ended"]
    return (*gone, *(_living(record, lines.get(id, [])) for id, record in here.items()))


def bill(resources: Sequence[Billed], catalog: Catalog, *, until: float) -> tuple[BillRow, ...]:
    """What each thing has cost up to `until`; the root disks of instances come last, in rows of their own."""
    machines = [resource for resource in resources if resource.token == INSTANCE]
    rows = []
    for resource in resources:
        rows.append(
            BillRow(
                id=resource.id,
                kind=resource.token.rpartition(":")[2],
                cluster_id=resource.cluster_id,
                began_at=resource.began_at,
                ended_at=resource.ended_at,
                usd=_usd(resource, machines, catalog, until),
            )
        )
    return (*rows, *(_disk_row(resource, catalog, until) for resource in machines if resource.disk_gib))


def _usd(resource: Billed, machines: Sequence[Billed], catalog: Catalog, until: float) -> float | None:
    if resource.upfront_usd is not None:
        return resource.upfront_usd if resource.began_at <= until else 0.0
    seconds = _empty_s(resource, machines, until) if resource.token == RESERVATION else _lived_s(resource, until)
    each = _usd_per_hour(resource, catalog)
    return None if each is None else each * seconds / HOUR_S


def _disk_row(resource: Billed, catalog: Catalog, until: float) -> BillRow:
    """The row of an instance's root disk, under the instance's id."""
    charges = catalog.charges.get(resource.region)
    rate = None if charges is None else charges.disk_usd_per_gib_hour * resource.disk_gib
    return BillRow(
        id=resource.id,
        kind=ROOT_DISK,
        cluster_id=resource.cluster_id,
        began_at=resource.began_at,
        ended_at=resource.ended_at,
        usd=None if rate is None else rate * _lived_s(resource, until) / HOUR_S,
    )


def _usd_per_hour(resource: Billed, catalog: Catalog) -> float | None:
    if resource.market == CAPACITY_BLOCK:
        return 0.0
    if resource.market == SPOT:
        return catalog.spot_price_usd_per_hour(resource.instance_type or "", resource.region)
    if resource.token in (INSTANCE, RESERVATION):
        return catalog.price_usd_per_hour(resource.instance_type or "", resource.region)
    if resource.token == ADDRESS:
        return catalog.public_address_usd_per_hour
    charges = catalog.charges.get(resource.region)
    return None if charges is None else charges.nat_gateway_usd_per_hour


def _lived_s(resource: Billed, until: float) -> float:
    return max(0.0, _end(resource, until) - resource.began_at)


def _empty_s(reservation: Billed, machines: Sequence[Billed], until: float) -> float:
    """The sum over a reservation's places of the seconds that each was empty."""
    inside = [machine for machine in machines if machine.reservation == reservation.id]
    end = _end(reservation, until)
    moments = {reservation.began_at, end, *(at for at, _ in reservation.counts)}
    moments |= {at for machine in inside for at in (machine.began_at, _end(machine, until))}
    inner = sorted(at for at in moments if reservation.began_at <= at <= end)
    total = 0.0
    for start, stop in itertools.pairwise(inner):
        held = [count for at, count in reservation.counts if at <= start][-1]
        used = sum(machine.began_at <= start and _end(machine, until) >= stop for machine in inside)
        total += max(0, held - used) * (stop - start)
    return total


def _end(resource: Billed, until: float) -> float:
    return until if resource.ended_at is None else min(resource.ended_at, until)


def _gone(rows: Sequence[Properties]) -> Billed:
    return _billed(rows[-1], rows, ended_at=_second(rows[-1]["at"]))


def _living(record: Record, rows: Sequence[Properties]) -> Billed:
    return _billed(billed_facts(record), rows, ended_at=None)


def _billed(facts: Properties, rows: Sequence[Properties], *, ended_at: float | None) -> Billed:
    began_at = _second(facts["began_at"])
    changes = tuple((_second(row["at"]), int(row["count"])) for row in rows if row["what"] == "counted")
    first = int(rows[0]["first_count"]) if rows else int(facts["first_count"])
    return Billed(
        id=facts["id"],
        token=facts["token"],
        region=facts["region"],
        cluster_id=facts["cluster_id"],
        began_at=began_at,
        ended_at=ended_at,
        instance_type=facts["instance_type"],
        reservation=facts["reservation"],
        market=facts.get("market"),
        counts=((began_at, first), *changes),
        disk_gib=int(facts.get("disk_gib", 0)),
        upfront_usd=facts.get("upfront_usd"),
    )


def _second(at: float | str) -> float:
    return float(math.floor(float(at)))
