"""How many round trips a command on one host takes, computed from the time that a delay of the server adds."""

from __future__ import annotations

import os

from bench.fanout import COMMAND, TIMEOUT_S
from bench.fanout_servers import light_servers
from bench.peer_tools import GO, tools
from bench.timing import median_wall_s, run
from bench.workspace import workspace

RUNS = 5
DELAY_MS = 200
NAMES = ("clusterctl", "clusterctl, warm", GO)
AIMS = {"clusterctl": "≤ 7"}


def table() -> list[tuple[str, ...]]:
    """Rows: tool, round trips beside TCP's own (which the servers do not delay), aim."""
    found = [tool for tool in tools() if tool.name in NAMES]
    seconds: dict[tuple[str, int], float] = {}
    for delay_ms in (0, DELAY_MS):
        with workspace() as space, light_servers(1, round_trip_ms=delay_ms) as hosts:
            env = {**space.env, "HOME": str(space.folder), "USER": os.environ.get("USER", "root")}
            for tool in found:
                argv = tool.argv(hosts, 1, COMMAND)
                runs = [run(argv, env=env, cwd=str(space.folder), timeout_s=TIMEOUT_S) for _ in range(RUNS + 1)]
                seconds[tool.name, delay_ms] = median_wall_s(runs[1:])
    return [
        (
            tool.name,
            f"{(seconds[tool.name, DELAY_MS] - seconds[tool.name, 0]) * 1000 / DELAY_MS:.1f}",
            AIMS.get(tool.name, ""),
        )
        for tool in found
    ]
