"""How long a job takes on four rehearsed nodes: from `run` typed to the first line, between ranks, and to its end."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from bench import job_scale
from bench.workspace import CLUSTERCTL, workspace

NODES = 4
RUNS = 5
PRINT_TIME = "import time; print(time.time(), flush=True)"
FAILS = """\
import os, sys, time
print(time.time(), flush=True)
time.sleep(1)
if os.environ["RANK"] == "1":
    print(time.time(), flush=True)
    sys.exit(7)
time.sleep(600)
"""


def table() -> list[tuple[str, ...]]:
    """Rows: what, the median or what was measured once, its aim."""
    with workspace() as space:
        stack = str(space.stack("bjobs", nodes=NODES, machines="process"))
        subprocess.run([CLUSTERCTL, "up", stack], env=space.env, check=True, capture_output=True, timeout=180)
        try:
            rows = _rows(space.env, space.folder)
        finally:
            subprocess.run([CLUSTERCTL, "down", stack], env=space.env, check=True, capture_output=True, timeout=120)
    return [*rows, *job_scale.table()]


def _rows(env: Mapping[str, str], folder: Path) -> list[tuple[str, ...]]:
    work = folder / "work"
    work.mkdir()
    (work / "look.py").write_text(PRINT_TIME)
    (work / "fails.py").write_text(FAILS)
    by_hand = ("ssh", "--node", "all", "--", "python3", "-c", PRINT_TIME)
    job = ("run", "--launcher", "plain", "--workdir", str(work), "--json", "--")
    by_hand_s, firsts, spreads, ends = [], [], [], []
    _first_line_s((*job, "look.py"), env)  # not counted: it puts the program for jobs on the nodes
    for _ in range(RUNS):
        by_hand_s.append(_first_line_s(by_hand, env)[0])
        first_s, lines, _ = _first_line_s((*job, "look.py"), env)
        began = [float(line["line"]) for line in lines if "line" in line]
        firsts.append(first_s)
        spreads.append(max(began) - min(began))
        _, lines, over_s = _first_line_s((*job, "fails.py"), env)
        ends.append(over_s - max(float(line["line"]) for line in lines if "line" in line))
    over_hand_s = statistics.median(firsts) - statistics.median(by_hand_s)
    return [
        ("`clusterctl ssh` to all nodes: until the first line of output", f"{statistics.median(by_hand_s):.2f} s", ""),
        ("`clusterctl run`: until the first line of output", f"{statistics.median(firsts):.2f} s", ""),
        ("how much longer `run` takes than `ssh`", f"+ {over_hand_s:.2f} s", "< + 2 s"),
        (
            "time from the first rank's start to the last rank's",
            f"{1000 * statistics.median(spreads):.0f} ms",
            "< 25 ms",
        ),
        ("from a rank's failure to the end of `run`", f"{statistics.median(ends):.2f} s", "< 3 s"),
    ]


def _first_line_s(words: tuple[str, ...], env: Mapping[str, str]) -> tuple[float, list[dict[str, str]], float]:
    """Seconds to the first line of output, all lines, and when the command had ended (Unix time)."""
    began_s = time.monotonic()
    first_s = None
    lines = []
    with subprocess.Popen(
        [CLUSTERCTL, *words], env=dict(env), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        for row in process.stdout:
            parsed = json.loads(row) if row.startswith(b"{") else {"text": row.decode()}
            if first_s is None and ("line" in parsed or "text" in parsed):
                first_s = time.monotonic() - began_s
            lines.append(parsed)
    if first_s is None:
        raise RuntimeError(f"no line of a rank: clusterctl {' '.join(words)}")
    return first_s, lines, time.time()
