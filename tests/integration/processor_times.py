"""Processor seconds that tests take, summed for each file: shown at the end, as time on two busy cores says little.

Counted is what the worker used itself and what it waited for: commands, the engine, its plugins. What outlives its
starter is not: a rehearsed region (0.5 s each) and machines that boot (2 to 3 s each).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any  # pytest's reporter is not public

import pytest

NAME = "processor_s"
SHOWN = 25
BEGUN = pytest.StashKey[float]()


def spent_s(spent: os.times_result) -> float:
    """The seconds of a process and of all that it waited for. Pure."""
    return spent.user + spent.system + spent.children_user + spent.children_system


def by_file(spent: Iterable[tuple[str, float]]) -> list[tuple[str, int, float]]:
    """File, tests, seconds, of (node id, seconds); the most expensive first."""
    counts: dict[str, int] = {}
    sums: dict[str, float] = {}
    for nodeid, seconds in spent:
        file = nodeid.partition("::")[0]
        counts[file] = counts.get(file, 0) + 1
        sums[file] = sums.get(file, 0.0) + seconds
    return sorted(((file, counts[file], sums[file]) for file in sums), key=lambda row: -row[2])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before fixtures are made: those that tests share count for the first of them."""
    item.stash[BEGUN] = spent_s(os.times())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Has the report of the test's end carry it, from a worker to the process that shows it."""
    if call.when == "teardown" and BEGUN in item.stash:
        item.user_properties.append((NAME, spent_s(os.times()) - item.stash[BEGUN]))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The most expensive files, where more than one was run."""
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    ended = [report for report in reports if getattr(report, "when", None) == "teardown"]
    rows = by_file((report.nodeid, dict(report.user_properties).get(NAME, 0.0)) for report in ended)
    if len(rows) < 2:
        return
    total_s = sum(seconds for _, _, seconds in rows)
    terminalreporter.section(f"{total_s:.0f} processor seconds, the {min(SHOWN, len(rows))} most expensive files")
    for file, count, seconds in rows[:SHOWN]:
        terminalreporter.write_line(f"{seconds:8.1f} s {count:4d} tests  {file}")
