"""One command on many hosts: clusterctl and the tools people use for it, in turns, against the same servers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from bench.fanout_servers import light_servers, real_sshd
from bench.peer_tools import Hosts, Tool, tools
from bench.timing import CommandFailed, Timing, median_wall_s, run, run_with_memory
from bench.workspace import workspace

RUNS = 3
LONG_S = 4.0
"""A tool that takes longer than this is not run as often: nobody waits for its third decimal."""
TIMEOUT_S = 120
COMMAND = "echo ok"


@dataclass(frozen=True, kw_only=True)
class Case:
    """Servers of one kind and number, and how many the tools may do at a time."""

    name: str
    servers: Callable[[], AbstractContextManager[Hosts]]
    width: int
    aim: str


CASES = (
    Case(name="16 sshd", servers=lambda: real_sshd(16), width=64, aim=""),
    Case(name="64 sshd", servers=lambda: real_sshd(64), width=64, aim="≤ 1.1 × Go, ahead of all others"),
    Case(name="256 light", servers=lambda: light_servers(256), width=256, aim="≤ 2 × Go, 4 × faster than pdsh, clush"),
    Case(name="1024 light", servers=lambda: light_servers(1024), width=256, aim="< 300 MiB"),
    Case(
        name="256 light, 50 ms", servers=lambda: light_servers(256, round_trip_ms=50), width=256, aim="≤ 7 round trips"
    ),
)


def table() -> list[tuple[str, ...]]:
    """Rows: servers, tool, median seconds, times clusterctl's, peak MiB of its largest process, aim."""
    found = tools()
    wanted = os.environ.get("BENCH_FANOUT", "")
    rows: list[tuple[str, ...]] = []
    for case in CASES:
        if wanted in case.name:
            rows += _rows(case, found)
    return rows


def _rows(case: Case, found: list[Tool]) -> list[tuple[str, ...]]:
    with workspace() as space, case.servers() as hosts:
        env = {**space.env, "HOME": str(space.folder), "USER": os.environ.get("USER", "root")}
        used = [tool for tool in found if hosts.count <= tool.most]
        timings: dict[str, list[Timing]] = {tool.name: [] for tool in used}
        peaks: dict[str, float] = {}
        for number in range(RUNS):
            for tool in list(used):
                if number >= 1 and timings[tool.name][0].wall_s > LONG_S:
                    continue
                argv = tool.argv(hosts, case.width, COMMAND)
                try:
                    timing = run(argv, env=env, cwd=str(space.folder), timeout_s=TIMEOUT_S)
                    print(f"{case.name}, {tool.name}: {timing.wall_s:.2f} s", file=sys.stderr, flush=True)
                    timings[tool.name].append(timing)
                    if number == 0:
                        peaks[tool.name] = run_with_memory(
                            argv, env=env, cwd=str(space.folder), timeout_s=TIMEOUT_S
                        ).peak_mib
                except CommandFailed as e:
                    print(f"{case.name}, {tool.name}: {e}", file=sys.stderr)
                    used.remove(tool)
    ours = median_wall_s(timings[used[0].name])
    rows: list[tuple[str, ...]] = []
    for tool in sorted(used, key=lambda tool: median_wall_s(timings[tool.name])):
        seconds = median_wall_s(timings[tool.name])
        aim = case.aim if tool is used[0] else ""
        rows.append((case.name, tool.name, f"{seconds:.2f} s", f"{seconds / ours:.2f}", f"{peaks[tool.name]:.0f}", aim))
    return rows
