"""How long a rehearsed cluster takes: from `up` typed to all ready, and `down`."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

from bench.timing import Timing, median_wall_s, run
from bench.workspace import CLUSTERCTL, workspace


@dataclass(frozen=True, kw_only=True)
class Case:
    """One size of cluster on one kind of machine."""

    machines: str
    nodes: int
    runs: int
    up_aim: str
    down_aim: str


CASES = (
    Case(machines="nspawn", nodes=4, runs=3, up_aim="< 10 s", down_aim="< 5 s"),
    Case(machines="process", nodes=4, runs=3, up_aim="< 5 s", down_aim="< 5 s"),
    Case(machines="nspawn", nodes=16, runs=1, up_aim="< 30 s", down_aim=""),
)


def table() -> list[tuple[str, ...]]:
    """Rows: machines, nodes, `up` until all are ready, its aim, `down`, its aim (image cached, medians)."""
    subprocess.run([CLUSTERCTL, "rehearse", "image"], check=True, timeout=600, stdout=sys.stderr, env=os.environ)
    return [_row(case) for case in CASES if case.machines != "nspawn" or os.geteuid() == 0]


def _row(case: Case) -> tuple[str, ...]:
    ups: list[Timing] = []
    downs: list[Timing] = []
    for number in range(case.runs):
        with workspace() as space:
            stack = str(
                space.stack(f"b{case.nodes}{case.machines[0]}{number}", nodes=case.nodes, machines=case.machines)
            )
            ups.append(run([CLUSTERCTL, "up", stack], env=space.env, cwd=str(space.folder), timeout_s=180))
            downs.append(run([CLUSTERCTL, "down", stack], env=space.env, cwd=str(space.folder), timeout_s=60))
    return (
        case.machines,
        str(case.nodes),
        f"{median_wall_s(ups):.1f} s",
        case.up_aim,
        f"{median_wall_s(downs):.1f} s",
        case.down_aim,
    )
