"""What a node says of itself: one line of `clusterctl-node status`, typed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any  # a row of JSON

READY = "ready"
FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class NodeCheck:
    """One thing that a node looked at when it booted."""

    name: str
    verdict: str
    """`ok`, `failed`, `not applicable`, or in a rehearsal `simulated`."""
    detail: str


@dataclass(frozen=True, kw_only=True)
class IdleReport:
    """What slot 0 found of the whole cluster's use."""

    at: datetime
    limit_s: float
    since: datetime | None
    """None: something keeps it."""
    keeps: tuple[str, ...]
    """What does, such as `train-1: 8 GPU processes`."""
    ends: bool = False
    """It is decided, and nothing stops it any more."""


@dataclass(frozen=True, kw_only=True)
class SpotNotice:
    """What AWS told a node that is a spot machine."""

    kind: str
    """`interruption`: AWS takes it back at `time`; `rebalance`: it may do so soon, and says so since `time`."""
    time: datetime
    at: datetime
    """When the node heard of it."""


@dataclass(frozen=True, kw_only=True)
class NodeReport:
    """A node's own words; other keys are for other readers."""

    phase: str
    generation: int
    since: str | None = None
    failed_phase: str | None = None
    message: str | None = None
    log: tuple[str, ...] = ()
    checks: tuple[NodeCheck, ...] = ()
    """Of this boot, as far as it has come."""
    idle: IdleReport | None = None
    """Of slot 0, where the cluster has an idle rule."""
    notice: SpotNotice | None = None
    """The one that counts now."""
    watch: tuple[str, ...] = ()
    """What of the node's watch over its end fails, each with why."""


def parse_report(line: str) -> NodeReport | None:
    """The report in one JSON line; None when the line is none."""
    try:
        row = json.loads(line)
        error = row.get("error") or {}
        return NodeReport(
            phase=str(row["phase"]),
            generation=int(row.get("generation") or 0),
            since=row.get("since"),
            failed_phase=error.get("phase"),
            message=error.get("message"),
            log=tuple(str(one) for one in error.get("log") or ()),
            checks=tuple(
                NodeCheck(name=str(one["name"]), verdict=str(one["verdict"]), detail=str(one["detail"]))
                for one in row.get("checks") or ()
            ),
            idle=_idle(row.get("idle")),
            notice=_notice(row.get("notice")),
            watch=tuple(f"{part}: {why}" for part, why in (row.get("watch") or {}).items()),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _idle(row: Mapping[str, Any] | None) -> IdleReport | None:
    if not row:
        return None
    since = row["since"]
    return IdleReport(
        at=datetime.fromisoformat(row["at"]),
        limit_s=float(row["limit_s"]),
        since=None if since is None else datetime.fromisoformat(since),
        keeps=tuple(str(one) for one in row["keeps"]),
        ends=bool(row.get("ends")),
    )


def _notice(row: Mapping[str, Any] | None) -> SpotNotice | None:
    if not row:
        return None
    times = {key: datetime.fromisoformat(row[key]) for key in ("time", "at")}
    return SpotNotice(kind=str(row["kind"]), **times)
