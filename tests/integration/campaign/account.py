"""What clusterctl wrote down of machines, in the accounts of a home, beside what the region bills for them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from clusterctl.cost.sighting import SeenMachine
from clusterctl.cost.sighting_file import read_seen
from clusterctl.status.account import read_account
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.ledger import Span
from clusterctl_rehearsal.region.bill import BillRow

from tests.integration.campaign.truth import REGION, billed
from tests.integration.rehearsed import Rehearsed

CENT = 0.005
SPAN_S = 45.0
"""Between the instant that a change is planned for, which the account has, and what the change then does."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """The region's bill for machines, and what clusterctl's files say of the same machines."""

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
    machines: int
    seen_to_their_end: int
    """AWS told when they began and ended, and clusterctl wrote it down: what they cost is their bill, to the cent."""
    unreal: tuple[str, ...]
    """Machines in an account that the region never had."""
    misbilled: tuple[str, ...]
    """Of those seen to their end: whose cost is another."""

    @property
    def wrong(self) -> list[str]:
        """An account may err early, by seconds, as a deadline then does; what AWS told may not err."""
        found = [f"not the bill to the cent: {one}" for one in self.misbilled]
        if self.unreal:
            found.append(f"the account has machines that never were: {self.unreal}")
        if self.begun_late_s > SPAN_S or self.ended_early_s > SPAN_S:
            found.append(
                f"the account has a machine {self.begun_late_s:.1f} s after it began, or ends one "
                f"{self.ended_early_s:.1f} s before it did"
            )
        return found


def account(cluster: Rehearsed, *, deadline: float | None) -> Account:
    """What all accounts of this home say; a span without an end counts to the deadline."""
    rows = billed(cluster)
    spans = _spans(cluster.home / "ledger")
    machines = [row for row in rows if row.kind == "Instance"]
    counted = [(row, spans[row.id]) for row in machines if row.id in spans]
    until = time.time() if deadline is None else deadline
    seen = {id: one for path in (cluster.home / "observed").glob("*.jsonl") for id, one in read_seen(path).items()}
    ended = [(row, seen[row.id]) for row in machines if _is_seen_to_its_end(row, seen.get(row.id))]
    return Account(
        bill_usd=sum(row.usd or 0.0 for row in machines),
        empty_usd=sum(row.usd or 0.0 for row in rows if row.kind == "CapacityReservation"),
        uncounted_usd=sum(row.usd or 0.0 for row in machines if row.id not in spans),
        account_usd=sum(_usd(span, until) for span in spans.values()),
        begun_late_s=max((span.started_at.timestamp() - row.began_at for row, span in counted), default=0.0),
        ended_early_s=max(((row.ended_at or until) - _end(span, until) for row, span in counted), default=0.0),
        machines=len(machines),
        seen_to_their_end=len(ended),
        unreal=tuple(sorted(set(spans) - {row.id for row in machines})),
        misbilled=tuple(_misbilled(row, one) for row, one in ended if _is_off(row, one)),
    )


def _is_seen_to_its_end(row: BillRow, one: SeenMachine | None) -> bool:
    return one is not None and one.ended_at is not None and row.ended_at is not None


def _is_off(row: BillRow, one: SeenMachine) -> bool:
    rate = load_catalog().price_usd_per_hour(one.instance_type or "", REGION)
    if rate is None or one.ended_at is None or row.usd is None:
        return True
    return abs(rate * (one.ended_at - one.launched_at).total_seconds() / 3600 - row.usd) >= CENT


def _misbilled(row: BillRow, one: SeenMachine) -> str:
    return f"{row.id}: billed from {row.began_at} to {row.ended_at}, seen from {one.launched_at} to {one.ended_at}"


def _spans(folder: Path) -> dict[str, Span]:
    """Instance id → its span, of every account in the folder."""
    found: dict[str, Span] = {}
    for path in folder.glob("*.jsonl"):
        read = read_account(path)
        assert read is not None, f"{path}: no account"
        found |= {span.instance_id: span for span in read.spans}
    return found


def _end(span: Span, until: float) -> float:
    return until if span.ended_at is None else span.ended_at.timestamp()


def _usd(span: Span, until: float) -> float:
    assert span.price_usd_per_hour is not None
    return span.price_usd_per_hour * max(0.0, _end(span, until) - span.started_at.timestamp()) / 3600
