"""What a node says of itself: one line of `clusterctl-node status`, typed."""

from __future__ import annotations

import json
from dataclasses import dataclass

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
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
