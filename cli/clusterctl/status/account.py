"""What a cluster has cost so far, from this computer's copy of its account."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

from clusterctl_infra.ledger import Ledger, Span, ledger_from_json
from clusterctl_infra.outputs import Inventory

HOUR = timedelta(hours=1)


def read_account(path: Path) -> Ledger | None:
    """Every span in the append-only file, with its end where one was written; None without a readable file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return account_of(json.loads(line) for line in lines if line.strip())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def account_of(rows: Iterable[dict[str, list[dict[str, object]]]]) -> Ledger:
    """The spans that `rows` open and close. Raises KeyError, TypeError or ValueError on other shapes."""
    spans: dict[tuple[int, str], Span] = {}
    for row in rows:
        for span in (*ledger_from_json(row["opened"]).spans, *ledger_from_json(row["closed"]).spans):
            spans[span.slot, span.instance_id] = span
    return Ledger(spans=tuple(spans.values()))


def spent_usd(inventory: Inventory, account: Ledger | None, *, until: datetime) -> float | None:
    """US dollars up to `until`, about; None when a price is not known.

    Without an account: this run's time at today's rate, which leaves out earlier sizes and runs.
    """
    began = datetime.fromisoformat(inventory.started_at)
    rate = inventory.usd_per_hour
    if account is None or not account.spans:
        return None if rate is None else rate * _hours(began, until)
    prices = [span.price_usd_per_hour for span in account.spans]
    if rate is None or any(price is None for price in prices):
        return None
    machines = sum(
        (span.price_usd_per_hour or 0.0) * _hours(span.started_at, span.ended_at or until) for span in account.spans
    )
    running = sum(span.price_usd_per_hour or 0.0 for span in account.spans if span.ended_at is None)
    # What costs beside machines (addresses, storage) is what the hourly sum has beyond them; from birth, to err early.
    beside = max(0.0, rate - running) if running else 0.0
    return machines + beside * _hours(began, until)


def replaced(account: Ledger | None, slot: int, *, since: datetime) -> Span | None:
    """The last machine of the slot that ended after `since` and has a successor; None when there was none."""
    if account is None:
        return None
    spans = [span for span in account.spans if span.slot == slot]
    ended = [span for span in spans if span.ended_at is not None and span.ended_at > since]
    if not ended or all(span.ended_at is not None for span in spans):
        return None
    return max(ended, key=lambda span: span.ended_at or since)


def _hours(began: datetime, ended: datetime) -> float:
    return max(timedelta(0), ended - began) / HOUR
