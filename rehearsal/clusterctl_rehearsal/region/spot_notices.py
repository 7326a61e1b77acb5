"""What AWS tells a spot machine before it takes it back: facts of the instance, pages of its metadata service. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any  # pages and folders of the metadata service

from clusterctl_rehearsal.region.record import Record

NOTICE_S = 120
"""From the notice to the end (EC2 user guide, "Spot Instance interruption notices")."""
TAKEN_BACK_AT, REBALANCE_AT = "taken_back_at", "rebalance_at"
"""Facts of an instance, in seconds since 1970: when AWS takes it back, and since when AWS recommends leaving it."""


def taken_back_at(record: Record) -> float | None:
    """When AWS takes the machine back; None without a notice."""
    return record.facts.get(TAKEN_BACK_AT)


def notice_pages(record: Record) -> dict[str, Any]:
    """The pages under `/latest/meta-data/` that are there only with a notice."""
    pages: dict[str, Any] = {}
    if (at := taken_back_at(record)) is not None:
        action = json.dumps({"action": "terminate", "time": _written(at)})
        pages["spot"] = {"instance-action": action, "termination-time": _written(at)}
    if (at := record.facts.get(REBALANCE_AT)) is not None:
        pages["events"] = {"recommendations": {"rebalance": json.dumps({"noticeTime": _written(at)})}}
    return pages


def _written(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
