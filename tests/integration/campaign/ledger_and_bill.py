"""What clusterctl wrote down of machines, in the ledgers of a home, beside what the region bills for them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from clusterctl.cost.correction import SHORT_S, corrections
from clusterctl.cost.sighting import SeenMachine
from clusterctl.cost.sighting_file import read_seen
from clusterctl.status.ledger import read_ledger
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.ledger import Span
from clusterctl_infra.ledger_correction import corrected
from clusterctl_rehearsal.region.bill import BillRow

from tests.integration.campaign.region_facts import REGION, billed
from tests.integration.rehearsed import Rehearsed

CENT = 0.005
MOST_UNCOUNTED_S = SHORT_S + 15.0
"""How much of a machine's time the ledger may lack, at its start and end together: it counts in minutes."""


@dataclass(frozen=True, kw_only=True)
class LedgerAndBill:
    """The region's bill for machines, and what clusterctl's files say of the same machines."""

    bill_usd: float
    """Of every machine that there ever was."""
    empty_usd: float
    """Of reserved places in which nothing ran, such as between a reservation and its machines."""
    uncounted_usd: float
    """The part of the bill that is of machines in no ledger: their `up` was cut off before it wrote them down."""
    ledger_usd: float
    uncounted_s: float
    """The longest time of a machine in a ledger that no span of its slot counts, as the next command corrects them."""
    machines: int
    seen_to_their_end: int
    """AWS reported their start and end, and clusterctl recorded both: their cost is their bill, to the cent."""
    unreal: tuple[str, ...]
    """Machines in a ledger that the region never had."""
    misbilled: tuple[str, ...]
    """Machines seen to their end whose cost differs from their bill."""

    @property
    def wrong(self) -> list[str]:
        """A ledger may count too much, which makes a deadline early; times that AWS reported must be exact."""
        found = [f"not the bill to the cent: {difference}" for difference in self.misbilled]
        if self.unreal:
            found.append(f"the ledger has machines that never were: {self.unreal}")
        if self.uncounted_s > MOST_UNCOUNTED_S:
            found.append(f"a machine ran for {self.uncounted_s:.0f} s that a budget would not count")
        return found


def ledger_and_bill(cluster: Rehearsed, *, deadline: float | None) -> LedgerAndBill:
    """What all ledgers of this home say; a span without an end counts to the deadline."""
    rows = billed(cluster)
    spans = _spans(cluster.home / "ledger")
    machines = [row for row in rows if row.kind == "Instance"]
    until = time.time() if deadline is None else deadline
    right = _right_spans(cluster.home)
    seen = {
        id: machine for path in (cluster.home / "observed").glob("*.jsonl") for id, machine in read_seen(path).items()
    }
    ended = [(row, seen[row.id]) for row in machines if _is_seen_to_its_end(row, seen.get(row.id))]
    return LedgerAndBill(
        bill_usd=sum(row.usd or 0.0 for row in machines),
        empty_usd=sum(row.usd or 0.0 for row in rows if row.kind == "CapacityReservation"),
        uncounted_usd=sum(row.usd or 0.0 for row in machines if row.id not in spans),
        ledger_usd=sum(_usd(span, until) for span in spans.values()),
        uncounted_s=max((_uncounted_s(row, right, until) for row in machines), default=0.0),
        machines=len(machines),
        seen_to_their_end=len(ended),
        unreal=tuple(sorted(set(spans) - {row.id for row in machines})),
        misbilled=tuple(_misbilled(row, machine) for row, machine in ended if _is_off(row, machine)),
    )


def _is_seen_to_its_end(row: BillRow, machine: SeenMachine | None) -> bool:
    return machine is not None and machine.ended_at is not None and row.ended_at is not None


def _is_off(row: BillRow, machine: SeenMachine) -> bool:
    catalog, name = load_catalog(), machine.instance_type or ""
    rate = (catalog.spot_price_usd_per_hour if machine.is_spot else catalog.price_usd_per_hour)(name, REGION)
    if rate is None or machine.ended_at is None or row.usd is None:
        return True
    return abs(rate * (machine.ended_at - machine.launched_at).total_seconds() / 3600 - row.usd) >= CENT


def _misbilled(row: BillRow, machine: SeenMachine) -> str:
    return (
        f"{row.id}: billed from {row.began_at} to {row.ended_at}, seen from {machine.launched_at} to {machine.ended_at}"
    )


def _spans(folder: Path) -> dict[str, Span]:
    """Instance id → its span, of every ledger in the folder."""
    found: dict[str, Span] = {}
    for path in folder.glob("*.jsonl"):
        read = read_ledger(path)
        assert read is not None, f"{path}: no ledger"
        found |= {span.instance_id: span for span in read.spans}
    return found


def _right_spans(home: Path) -> list[Span]:
    """The spans of every ledger, put right as the next command would."""
    found: list[Span] = []
    for path in (home / "ledger").glob("*.jsonl"):
        read = read_ledger(path)
        assert read is not None, f"{path}: no ledger"
        found += corrected(read, corrections(read, read_seen(home / "observed" / path.name))).spans
    return found


def _uncounted_s(row: BillRow, spans: list[Span], until: float) -> float:
    """How long no span of its slot counts the machine; 0 for one in no ledger."""
    slot = next((span.slot for span in spans if span.instance_id == row.id), None)
    if slot is None:
        return 0.0
    counted = [(span.started_at.timestamp(), _end(span, until)) for span in spans if span.slot == slot]
    seconds = range(int((row.ended_at or until) - row.began_at))
    return float(sum(not any(begin <= row.began_at + at < end for begin, end in counted) for at in seconds))


def _end(span: Span, until: float) -> float:
    return until if span.ended_at is None else span.ended_at.timestamp()


def _usd(span: Span, until: float) -> float:
    assert span.price_usd_per_hour is not None
    return span.price_usd_per_hour * max(0.0, _end(span, until) - span.started_at.timestamp()) / 3600
