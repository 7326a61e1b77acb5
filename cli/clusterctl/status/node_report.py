"""What a node says of itself: one line of `clusterctl-node status`, typed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from clusterctl_infra.strict_json import MOST_TEXT, Fields, NotAsExpected, parsed

MOST_REPORT_BYTES = 256 * 1024
MOST_PARTS = 100
MOST_LINES = 1000
LONGEST_S = 400 * 24 * 3600
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
    """Since when nobody has used it; None: something keeps it."""
    keeps: tuple[str, ...]
    """What keeps the cluster, such as `train-1: 8 GPU processes`."""
    ends: bool = False
    """Whether it is decided that the cluster ends, which nothing stops any more."""


@dataclass(frozen=True, kw_only=True)
class SpotNotice:
    """What AWS told a node that is a spot machine."""

    kind: str
    """`interruption`: AWS takes it back at `time`; `rebalance`: it may do so soon, as it has said since `time`."""
    time: datetime
    at: datetime
    """When the node heard of it."""


@dataclass(frozen=True, kw_only=True)
class NodeReport:
    """What a node says of itself; keys that are not read here are for other readers."""

    phase: str
    generation: int
    since: datetime | None = None
    failed_phase: str | None = None
    message: str | None = None
    log: tuple[str, ...] = ()
    checks: tuple[NodeCheck, ...] = ()
    """The checks of this boot, as far as it has come."""
    idle: IdleReport | None = None
    """Only slot 0 has one, if the cluster has an idle rule."""
    notice: SpotNotice | None = None
    """The one that counts now."""
    membership: str | None = None
    """A hash of what its membership says; None: an older agent, which does not tell it."""
    deadline: datetime | None = None
    """The deadline in its membership."""
    watch: tuple[str, ...] = ()
    """The parts of the node's watch over its own end that fail, each with why."""
    jobs: tuple[str, ...] = ()
    """The jobs that run on it; these are not in its agent's report."""


def parse_report(line: str) -> NodeReport | None:
    """The report in one line; None for a line that is no JSON object, such as a login's greeting.

    Raises NotAsExpected for an object that is no report; callers catch it, since no command may fail because of what
    one node says.
    """
    try:
        value = parsed(line, most_bytes=MOST_REPORT_BYTES)
    except NotAsExpected:
        if line.lstrip().startswith("{"):
            raise
        return None
    if not isinstance(value, dict):
        return None
    row = Fields.of(value)
    error = row.fields_or_none("error") or Fields({})
    return NodeReport(
        phase=row.text("phase", most=100),
        generation=row.whole("generation") if row.has("generation") else 0,
        since=row.moment_or_none("since"),
        failed_phase=error.text_or_none("phase", most=100),
        message=_printed(error, "message") if error.has("message") else None,
        log=_log_lines(error),
        checks=tuple(_check(check) for check in row.objects("checks", most=1000)),
        idle=_idle(row.fields_or_none("idle")),
        notice=_notice(row.fields_or_none("notice")),
        membership=row.text_or_none("membership", most=64),
        deadline=row.moment_or_none("deadline"),
        watch=_watch(row.fields_or_none("watch")),
    )


def _printed(error: Fields, key: str) -> str:
    """What a program on the node printed. It is shortened rather than refused: what counts is that the node failed."""
    value = error.row.get(key)
    return value.replace("\0", "")[:MOST_TEXT] if isinstance(value, str) else error.text(key)


def _log_lines(error: Fields) -> tuple[str, ...]:
    lines = error.row.get("log")
    if not isinstance(lines, list):
        return error.texts("log")
    rows = Fields({str(number): line for number, line in enumerate(lines[:MOST_LINES])}, "error.log.")
    return tuple(_printed(rows, number) for number in rows.row)


def _check(row: Fields) -> NodeCheck:
    return NodeCheck(name=row.text("name"), verdict=row.text("verdict"), detail=row.text("detail"))


def _watch(row: Fields | None) -> tuple[str, ...]:
    return () if row is None else tuple(f"{part}: {row.text(part)}" for part in list(row.row)[:MOST_PARTS])


def _idle(row: Fields | None) -> IdleReport | None:
    if row is None:
        return None
    return IdleReport(
        at=row.moment("at"),
        limit_s=row.number("limit_s", low=0, high=LONGEST_S),
        since=row.moment_or_none("since"),
        keeps=row.texts("keeps"),
        ends=row.flag("ends"),
    )


def _notice(row: Fields | None) -> SpotNotice | None:
    if row is None:
        return None
    return SpotNotice(kind=row.text("kind", most=100), time=row.moment("time"), at=row.moment("at"))
