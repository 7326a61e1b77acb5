"""What a cluster has cost so far, from this computer's copy of its ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from clusterctl_infra.ledger import Ledger, Span, Standing, StandingKind, ledger_from_json
from clusterctl_infra.outputs import Inventory
from clusterctl_infra.strict_json import NotAsExpected, parsed_object

from clusterctl.cost.cost_row import sums
from clusterctl.cost.estimate import NOTHING_OVER, cost_rows
from clusterctl.cost.sighting import NOTHING_OBSERVED, Observed


def read_ledger(path: Path) -> Ledger | None:
    """The ledger in the append-only file, each span with its end if one was written; None without a readable file."""
    try:
        lines = path.read_bytes().splitlines()
        return ledger_of(parsed_object(line).row for line in lines if line.strip())
    except (OSError, NotAsExpected):
        return None


def ledger_of(rows: Iterable[Mapping[str, object]]) -> Ledger:
    """The ledger that `rows` add up to: each opens or closes spans. Raises NotAsExpected on other shapes."""
    spans: dict[tuple[int, str], Span] = {}
    standing: dict[tuple[str, datetime], Standing] = {}
    for row in rows:
        for part in (ledger_from_json(row.get("opened")), ledger_from_json(row.get("closed"))):
            spans |= {(span.slot, span.instance_id): span for span in part.spans}
            standing |= {(charge.kind, charge.started_at): charge for charge in part.standing}
    return Ledger(spans=tuple(spans.values()), standing=tuple(standing.values()))


def spent_usd(
    inventory: Inventory,
    ledger: Ledger | None,
    *,
    alive: frozenset[str] | None,
    now: datetime,
    observed: Observed = NOTHING_OBSERVED,
    is_reserved: bool | None = None,
    over: Mapping[StandingKind, datetime] = NOTHING_OVER,
    ways_out: frozenset[StandingKind] | None = None,
) -> float | None:
    """About how many US dollars were spent so far, as `clusterctl cost` shows; None when a price is not known."""
    rows = cost_rows(
        inventory,
        ledger,
        alive=alive,
        now=now,
        observed=observed,
        is_reserved=is_reserved,
        over=over,
        ways_out=ways_out,
    )
    return sums(rows).spent_usd


def replaced(ledger: Ledger | None, slot: int, *, since: datetime) -> Span | None:
    """The last machine of the slot that ended after `since` and has a successor; None when there was none."""
    if ledger is None:
        return None
    spans = [span for span in ledger.spans if span.slot == slot]
    ended = [span for span in spans if span.ended_at is not None and span.ended_at > since]
    if not ended or all(span.ended_at is not None for span in spans):
        return None
    return max(ended, key=lambda span: span.ended_at or since)
