"""One command on many hosts: clusterctl and the tools people use for it, in turns, against the same servers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from statistics import median

from bench.fanout_servers import light_servers, real_sshd
from bench.peer_tools import GO, Hosts, Tool, go_client, tools
from bench.timing import CommandFailed, Timing, median_cpu_s, median_wall_s, run
from bench.workspace import Workspace, workspace

RUNS = 5
LONG_S = 4.0
"""A tool that takes longer than this is run once: nobody waits for its third decimal."""
TIMEOUT_S = 120
COMMAND = "echo ok"
ROUNDS = 21


@dataclass(frozen=True, kw_only=True)
class Case:
    """Servers of one kind and number, and on how many at a time a tool may run the command."""

    name: str
    servers: Callable[[], AbstractContextManager[Hosts]]
    width: int
    aim: str = ""
    warm_aim: str = ""


CASES = (
    Case(name="16 sshd", servers=lambda: real_sshd(16), width=64),
    Case(
        name="64 sshd",
        servers=lambda: real_sshd(64),
        width=64,
        aim="≤ 1.1 × Go, ahead of all others",
        warm_aim="≤ 0.1 s",
    ),
    Case(name="64 light", servers=lambda: light_servers(64), width=64, warm_aim="≤ 0.1 s"),
    Case(name="256 light", servers=lambda: light_servers(256), width=256, aim="≤ 2 × Go, 4 × faster than pdsh, clush"),
    Case(name="1024 light", servers=lambda: light_servers(1024), width=256, aim="< 300 MiB"),
    Case(name="256 light, 50 ms", servers=lambda: light_servers(256, round_trip_ms=50), width=256),
)


def table() -> list[tuple[str, ...]]:
    """Rows: servers with the machine's load before, tool, wall, its ratio to Go's, processor seconds, MiB, aim.

    For `warm`, processor and memory are the command's own, without the process that keeps the connections.
    """
    found = tools()
    wanted = os.environ.get("BENCH_FANOUT", "")
    rows: list[tuple[str, ...]] = []
    for case in CASES:
        if wanted in {"", case.name}:
            rows += _rows(case, found)
    return rows


def _rows(case: Case, found: Sequence[Tool]) -> list[tuple[str, ...]]:
    servers = f"{case.name} (load {os.getloadavg()[0]:.1f})"
    with workspace() as space, case.servers() as hosts:
        timings = _timings(case, [tool for tool in found if hosts.count <= tool.most], hosts, space)
        round_s = _round_over_kept(hosts, case.width, space)
    go_s = median_wall_s(timings[GO]) if GO in timings else None
    aims = {"clusterctl": case.aim, "clusterctl, warm": case.warm_aim}
    rows: list[tuple[str, ...]] = [
        (
            servers,
            name,
            f"{median_wall_s(runs):.2f} s",
            "" if go_s is None else f"{median_wall_s(runs) / go_s:.2f}",
            f"{median_cpu_s(runs):.2f} s",
            f"{max(timing.peak_mib for timing in runs):.0f}",
            aims.get(name, ""),
        )
        for name, runs in sorted(timings.items(), key=lambda row: median_wall_s(row[1]))
    ]
    if round_s is not None:
        rows.append((servers, "the Go client's connections kept: one round alone", f"{round_s:.2f} s", "", "", "", ""))
    return rows


def _timings(case: Case, used: list[Tool], hosts: Hosts, space: Workspace) -> dict[str, list[Timing]]:
    """Each tool's runs, in turns. The first run compiles and connects: it counts only if it took longer than LONG_S."""
    env = {**space.env, "HOME": str(space.folder), "USER": os.environ.get("USER", "root")}
    timings: dict[str, list[Timing]] = {}
    for number in range(RUNS + 1):
        for tool in list(used):
            argv = tool.argv(hosts, case.width, COMMAND)
            try:
                timing = run(argv, env=env, cwd=str(space.folder), timeout_s=TIMEOUT_S)
            except CommandFailed as e:
                print(f"{case.name}, {tool.name}: {e}", file=sys.stderr)
                used.remove(tool)
                timings.pop(tool.name, None)
                continue
            print(f"{case.name}, {tool.name}: {timing.wall_s:.2f} s", file=sys.stderr, flush=True)
            if timing.wall_s > LONG_S:
                used.remove(tool)
            if number > 0 or timing.wall_s > LONG_S:
                timings.setdefault(tool.name, []).append(timing)
    return timings


def _round_over_kept(hosts: Hosts, width: int, space: Workspace) -> float | None:
    """Seconds of the command on open connections: no warm tool can be faster. None without Go."""
    client = go_client()
    if client is None:
        return None
    argv = [*client(hosts, width, COMMAND), str(ROUNDS)]
    env = {**space.env, "USER": os.environ.get("USER", "root")}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return median(float(line) for line in done.stdout.split())
