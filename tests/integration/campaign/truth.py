"""What is really there, by the kernel and by the region's own files: nothing that clusterctl wrote down is asked."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.found import Found
from clusterctl.cost.sighting import SeenMachine
from clusterctl.cost.sighting_file import read_seen
from clusterctl.reap.search import search
from clusterctl.status.account import read_account
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.ledger import Span
from clusterctl_rehearsal.home import RehearsalHome, rehearsal_home
from clusterctl_rehearsal.machines.process import ProcessDriver
from clusterctl_rehearsal.region.bill import BillRow, bill, billed_things
from clusterctl_rehearsal.region.client import ensure_region
from clusterctl_rehearsal.region.journal import BILLING
from clusterctl_rehearsal.region.store import Store

from tests.integration.rehearsed import Rehearsed, alive

REGION = "us-west-2"
CENT = 0.005
BILLS = (*BILLING, "aws:efs/fileSystem:FileSystem", "aws:fsx/lustreFileSystem:LustreFileSystem")
"""By the hour or by what is in it."""


@dataclass(frozen=True, kw_only=True)
class Money:
    """What the region would bill for machines, and what clusterctl's accounts say."""

    bill_usd: float
    """Of every machine that there ever was."""
    empty_usd: float
    """Of reserved places in which nothing ran, such as between a reservation and its machines."""
    uncounted_usd: float
    """The part of the bill that is of machines in no account: their `up` was cut off before it wrote them down."""
    account_usd: float
    begun_late_s: float
    """The account has a machine so long after it began; below 0 where it has all of them before."""
    ended_early_s: float
    unreal: tuple[str, ...]
    """Machines in an account that the region never had."""
    unseen: tuple[str, ...]
    """Machines that the region had and that clusterctl never wrote down from what AWS shows."""
    misbilled: tuple[str, ...]
    """Machines whose launch and end AWS told, and whose cost by those is not their bill to the cent."""


def home_of(cluster: Rehearsed) -> RehearsalHome:
    """The cluster's rehearsal."""
    return rehearsal_home(cluster.env)


def machines_alive(cluster: Rehearsed) -> list[str]:
    """Nodes that have processes."""
    driver = ProcessDriver(root=home_of(cluster).machines)
    found = [node for network, node in driver.found() if network == cluster.name]
    return sorted({*found, *alive(cluster.name)})


def billing(cluster: Rehearsed) -> dict[str, str]:
    """Id → type of everything that bills now."""
    return {row.id: row.token for row in Store(home_of(cluster).store).live() if row.token in BILLS}


def unlisted(cluster: Rehearsed) -> list[str]:
    """What bills and `reap` does not see: a leak. What goes while it is looked at is none."""
    before = billing(cluster)
    listed = {one.id for one in reaped_things(cluster)}
    after = billing(cluster)
    return sorted(f"{token} {id}" for id, token in before.items() if id in after and id not in listed)


def reaped_things(cluster: Rehearsed) -> list[Found]:
    """Every thing that `reap` finds."""
    endpoint = str(ensure_region(home_of(cluster))["endpoint"])
    found = search(lambda region: Clients(region=region, endpoint_url=endpoint), (REGION,), all_regions=False)
    return [thing for remains in found.remains for thing in remains.things]


def money(cluster: Rehearsed, *, deadline: float | None) -> Money:
    """The region's bill beside the accounts of this home; a span without an end counts to the deadline."""
    store = Store(home_of(cluster).store)
    rows = bill(billed_things(store.journal.rows(), store.live()), load_catalog(), until=time.time())
    assert all(row.usd is not None for row in rows), "a price is unknown"
    spans = _spans(cluster.home / "ledger")
    machines = [row for row in rows if row.kind == "Instance"]
    counted = [(row, spans[row.id]) for row in machines if row.id in spans]
    until = time.time() if deadline is None else deadline
    observed = cluster.home / "observed"
    seen = {id: one for path in observed.glob("*.jsonl") for id, one in read_seen(path).items()}
    return Money(
        bill_usd=sum(row.usd or 0.0 for row in machines),
        empty_usd=sum(row.usd or 0.0 for row in rows if row.kind == "CapacityReservation"),
        uncounted_usd=sum(row.usd or 0.0 for row in machines if row.id not in spans),
        account_usd=sum(_usd(span, until) for span in spans.values()),
        begun_late_s=max((span.started_at.timestamp() - row.began_at for row, span in counted), default=0.0),
        ended_early_s=max(((row.ended_at or until) - _end(span, until) for row, span in counted), default=0.0),
        unreal=tuple(sorted(set(spans) - {row.id for row in machines})),
        unseen=tuple(sorted({row.id for row in machines} - set(seen))),
        misbilled=tuple(_misbilled(row, seen[row.id]) for row in machines if _is_off(row, seen.get(row.id))),
    )


def _is_off(row: BillRow, one: SeenMachine | None) -> bool:
    """A machine that was seen to its end, and costs another sum than it bills."""
    if one is None or one.ended_at is None or row.ended_at is None or row.usd is None:
        return False
    rate = load_catalog().price_usd_per_hour(one.instance_type or "", REGION)
    return rate is None or abs(rate * (one.ended_at - one.launched_at).total_seconds() / 3600 - row.usd) >= CENT


def _misbilled(row: BillRow, one: SeenMachine) -> str:
    return f"{row.id}: billed from {row.began_at} to {row.ended_at}, seen from {one.launched_at} to {one.ended_at}"


def _spans(folder: Path) -> dict[str, Span]:
    """Instance id → its span, of every account in the folder."""
    found: dict[str, Span] = {}
    for path in folder.glob("*.jsonl"):
        account = read_account(path)
        assert account is not None, f"{path}: no account"
        found |= {span.instance_id: span for span in account.spans}
    return found


def _end(span: Span, until: float) -> float:
    return until if span.ended_at is None else span.ended_at.timestamp()


def _usd(span: Span, until: float) -> float:
    assert span.price_usd_per_hour is not None
    return span.price_usd_per_hour * max(0.0, _end(span, until) - span.started_at.timestamp()) / 3600
