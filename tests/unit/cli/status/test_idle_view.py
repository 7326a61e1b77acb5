"""What `clusterctl status` says of a cluster's use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from clusterctl.status.facts import Facts
from clusterctl.status.idle import idle_json, idle_line
from clusterctl.status.node_report import IdleReport, NodeReport

NOW = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)


def facts(*, idle_s: float | None = 720, age_s: float = 10, keeps: tuple[str, ...] = (), ends: bool = False) -> Facts:
    """What slot 0 said `age_s` ago of a rule of half an hour."""
    since = None if idle_s is None else NOW - timedelta(seconds=idle_s)
    report = IdleReport(at=NOW - timedelta(seconds=age_s), limit_s=1800, since=since, keeps=keeps, ends=ends)
    return Facts(now=NOW, instances=(), answers={0: NodeReport(phase="ready", generation=1, idle=report)})


LINES = {
    "idle": (facts(), "idle for 12 m; ends 14:18 UTC unless somebody uses it"),
    "in use": (
        facts(idle_s=None, keeps=("train-2: 8 GPU processes", "train-3: 1 SSH session")),
        "in use (train-2: 8 GPU processes; train-3: 1 SSH session); ends after 30 m without use",
    ),
    "decided": (facts(ends=True), "ends now: nobody used it for 30 m"),
    "a moment": (facts(idle_s=20), "in use until now; ends after 30 m without use"),
}


@pytest.mark.parametrize(("seen", "line"), LINES.values(), ids=LINES.keys())
def test_a_cluster_with_the_rule_says_how_it_is_used(seen: Facts, line: str) -> None:
    assert idle_line(seen) == line


SILENT = {
    "no rule": Facts(now=NOW, instances=(), answers={0: NodeReport(phase="ready", generation=1)}),
    "nobody judges any more": facts(age_s=600),
    "slot 0 was not asked": Facts(now=NOW, instances=()),
}


@pytest.mark.parametrize("seen", SILENT.values(), ids=SILENT.keys())
def test_nothing_is_said_of_what_nobody_judges(seen: Facts) -> None:
    assert (idle_line(seen), idle_json(seen)) == (None, None)


def test_json_has_times_as_text() -> None:
    shown = idle_json(facts())
    assert shown is not None
    assert (shown["since"], shown["limit_s"]) == ("2026-11-21T13:48:00+00:00", 1800)
