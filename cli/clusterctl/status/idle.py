"""What `clusterctl status` says of a cluster's use, where it has an idle rule. Pure."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

from clusterctl.status.facts import Facts
from clusterctl.status.node_report import IdleReport, NodeReport
from clusterctl.text.quantities import clock, duration

FRESH = timedelta(minutes=5)
"""Slot 0 judges every half minute; a judgement older than this says nothing about now."""
SHORT = timedelta(seconds=60)
"""A shorter time without use is not shown: nobody has to be told that nothing happens between two commands."""


def idle_report(facts: Facts) -> IdleReport | None:
    """What slot 0 found last; None without an idle rule, or if slot 0 has not judged lately."""
    answer = facts.answers.get(0)
    found = answer.idle if isinstance(answer, NodeReport) else None
    return found if found is not None and facts.now - found.at < FRESH else None


def idle_line(facts: Facts) -> str | None:
    """`idle for 12 m; ends 14:30 UTC unless it is used`, or what keeps the cluster."""
    found = idle_report(facts)
    if found is None:
        return None
    limit = timedelta(seconds=found.limit_s)
    if found.ends:
        return f"ends now: nobody used it for {duration(limit)}"
    if found.since is None:
        return f"in use ({'; '.join(found.keeps)}); ends after {duration(limit)} without use"
    idle = max(timedelta(0), facts.now - found.since)
    if idle < min(SHORT, limit / 2):
        return f"in use until now; ends after {duration(limit)} without use"
    return f"idle for {duration(idle)}; ends {clock(found.since + limit, facts.now)} unless somebody uses it"


def idle_json(facts: Facts) -> dict[str, object] | None:
    """What `clusterctl status --json` has under `idle`; null where nothing is known."""
    found = idle_report(facts)
    return None if found is None else {key: _plain(value) for key, value in dataclasses.asdict(found).items()}


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
