"""How long people wait now and at an earlier revision: offline commands, and one command on many servers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from bench.before import REVISION, checkout
from bench.fanout import COMMAND, TIMEOUT_S
from bench.fanout_servers import light_servers, real_sshd
from bench.peer_tools import GO, Hosts, clusterctl, clusterctl_warm, go_client
from bench.startup import NODES_PLANNED, an_inventory
from bench.timing import Timing, median_cpu_s, median_wall_s, run
from bench.workspace import CLUSTERCTL, ROOT, Workspace, workspace

BEFORE_ROOMS = "63ec8583"
"""The commit before the command line got its present folders (2026-11-23)."""
THEN, NOW = "then", "now"
START_RUNS, FANOUT_RUNS = 31, 11
AIMS = (("cold", "≤ 1.05"), ("warm", "≤ 1.20"))


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One command, then or now, as a whole process."""

    what: str
    revision: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    folder: Path


Timings = dict[tuple[str, str], list[Timing]]
"""Keys: (what was measured, the revision)."""
Servers = tuple[str, int, Callable[[], AbstractContextManager[Hosts]]]
SERVERS: tuple[Servers, ...] = (
    ("64 sshd", 64, lambda: real_sshd(64)),
    ("256 light", 256, lambda: light_servers(256)),
)


def table() -> list[tuple[str, ...]]:
    """Rows: what, its median at the earlier revision and now, how they compare, the aim. The commands take turns."""
    with checkout(os.environ.get(REVISION, BEFORE_ROOMS)) as then, workspace(then) as old, workspace(ROOT) as new:
        spaces = {THEN: old, NOW: new}
        rows = _start_rows(spaces)
        for name, width, servers in SERVERS:
            with servers() as hosts:
                rows += _fanout_rows(name, hosts, width, spaces)
        return rows


def _start_rows(spaces: Mapping[str, Workspace]) -> list[tuple[str, ...]]:
    """Rows: how many milliseconds longer than `python -c pass` the commands take."""
    plan = f"plan ({NODES_PLANNED} nodes)"
    measured = [Measured(what="pass", revision=NOW, argv=(sys.executable, "-c", "pass"), env=os.environ, folder=ROOT)]
    for revision, space in spaces.items():
        inventory = space.folder / "home" / "inventory"
        inventory.mkdir(parents=True)
        (inventory / "other@rehearsal.json").write_text(json.dumps(an_inventory()))
        stack = space.stack("bench", nodes=NODES_PLANNED, machines="none")
        for what, words in (("--help", ["--help"]), ("nodes", ["nodes"]), (plan, ["plan", str(stack)])):
            argv = (CLUSTERCTL, *words)
            measured.append(Measured(what=what, revision=revision, argv=argv, env=space.env, folder=space.folder))
    timings = _in_turns(measured, START_RUNS)
    floor = median_wall_s(timings["pass", NOW])

    def over(what: str, revision: str) -> float:
        return (median_wall_s(timings[what, revision]) - floor) * 1000

    return [
        (
            f"clusterctl {what}, over python",
            f"+{over(what, THEN):.0f} ms",
            f"+{over(what, NOW):.0f} ms",
            f"{over(what, NOW) - over(what, THEN):+.0f} ms",
            "not slower",
        )
        for what in ("--help", "nodes", plan)
    ]


def _fanout_rows(name: str, hosts: Hosts, width: int, spaces: Mapping[str, Workspace]) -> list[tuple[str, ...]]:
    """Rows of seconds, of processor seconds and, if there is Go, of the Go client's seconds now."""
    measured: list[Measured] = []
    for revision, space in spaces.items():
        env = {**space.env, "HOME": str(space.folder), "USER": os.environ.get("USER", "root")}
        for what, argv in (("cold", clusterctl), ("warm", clusterctl_warm)):
            words = tuple(argv(hosts, width, COMMAND))
            measured.append(Measured(what=what, revision=revision, argv=words, env=env, folder=space.folder))
    if (go := go_client()) is not None:
        words, space = tuple(go(hosts, width, COMMAND)), spaces[NOW]
        measured.append(Measured(what=GO, revision=NOW, argv=words, env=measured[-1].env, folder=space.folder))
    timings = _in_turns(measured, FANOUT_RUNS)
    rows = [_compared(f"{name}, {what}", timings, what, median_wall_s, aim) for what, aim in AIMS]
    rows.append(_compared(f"{name}, cold, its processor time", timings, "cold", median_cpu_s, ""))
    if (GO, NOW) in timings:
        rows.append((f"{name}, {GO}", "", f"{median_wall_s(timings[GO, NOW]):.3f} s", "", ""))
    return rows


def _compared(
    row: str, timings: Timings, what: str, of: Callable[[Sequence[Timing]], float], aim: str
) -> tuple[str, ...]:
    before, after = of(timings[what, THEN]), of(timings[what, NOW])
    return row, f"{before:.3f} s", f"{after:.3f} s", f"{after / before:.2f}", aim


def _in_turns(measured: Sequence[Measured], runs: int) -> Timings:
    """Each command's timings; the first round, which compiles and makes connections, does not count."""
    timings: Timings = {}
    for number in range(runs + 1):
        for each in measured if number % 2 else reversed(measured):
            timing = run(each.argv, env=each.env, cwd=str(each.folder), timeout_s=TIMEOUT_S)
            if number > 0:
                timings.setdefault((each.what, each.revision), []).append(timing)
    return timings
