"""How long a function's call takes compared with `clusterctl run`, how long `check` and `import clusterctl` take."""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

from bench.timing import Timing, median_wall_s, run
from bench.workspace import CLUSTERCTL, workspace

NODES = 4
CALLS = 5
STARTS = 15
PROGRAM = """\
import time
import clusterctl

@clusterctl.App("bench").function(cluster={cluster!r}, distributed_mode="manual", environment={{"PATH": {path!r}}})
def nothing():
    pass

if __name__ == "__main__":
    for _ in range({calls} + 1):
        started = time.monotonic()
        nothing.remote()
        print(time.monotonic() - started, flush=True)
"""
"""The first call loads and connects, and is not counted."""


def table() -> list[tuple[str, ...]]:
    """Rows: what, its median, the difference to what it is compared with, its aim."""
    with workspace() as space:
        cluster = "bapi"
        space.clusterctl("up", str(space.stack(cluster, nodes=NODES, machines="process")))
        path = f"{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin"
        work = space.folder / "work"
        work.mkdir()
        (work / "program.py").write_text(PROGRAM.format(cluster=cluster, path=path, calls=CALLS))
        (work / "empty.py").write_text("")
        done = subprocess.run(
            [sys.executable, "program.py"], env=space.env, cwd=work, check=True, capture_output=True, text=True
        )
        calls = [float(line) for line in done.stdout.splitlines() if line.replace(".", "").isdigit()][1:]
        job = [CLUSTERCTL, "run", "--cluster", cluster, "--launcher", "plain", "--nproc", "1"]
        argv = [*job, "--env", f"PATH={path}", "--", "empty.py"]
        runs = [run(argv, env=space.env, cwd=str(work), timeout_s=120) for _ in range(CALLS)]
        look = [CLUSTERCTL, "check", "--cluster", cluster]
        checks = [run(look, env=space.env, cwd=str(work), timeout_s=120) for _ in range(CALLS)]
        starts = {
            "python -c pass": "pass",
            "import clusterctl": "import clusterctl",
            "clusterctl.App": "import clusterctl; clusterctl.App",
        }
        timings: dict[str, list[Timing]] = {name: [] for name in starts}
        for _ in range(STARTS):
            for name, text in starts.items():
                argv = [sys.executable, "-c", text]
                timings[name].append(run(argv, env=space.env, cwd=str(work), timeout_s=30))
    call_s, run_s = statistics.median(calls), median_wall_s(runs)
    floor = median_wall_s(timings["python -c pass"])
    return [
        (f"clusterctl run of an empty script ({NODES} nodes)", f"{run_s:.2f} s", "", ""),
        (
            f"f.remote() of an empty function ({NODES} nodes)",
            f"{call_s:.2f} s",
            f"{call_s - run_s:+.2f} s",
            "< +0.30 s",
        ),
        (f"clusterctl check ({NODES} nodes)", f"{median_wall_s(checks):.2f} s", "", "< 1 s"),
        *(
            (name, f"{median_wall_s(row) * 1000:.0f} ms", f"{(median_wall_s(row) - floor) * 1000:+.0f} ms", "< +100 ms")
            for name, row in timings.items()
        ),
    ]
