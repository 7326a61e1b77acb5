"""How long `plan --online` takes when each answer of AWS is slow: it makes all its calls at once."""

from __future__ import annotations

from bench.timing import median_wall_s, run
from bench.workspace import CLUSTERCTL, workspace

NODES = 64
LATENCY_MS = 50
RUNS = 5
AIM = "< 3 s"


def table() -> list[tuple[str, ...]]:
    """One row: nodes, the delay of each call, `plan --online`, how much longer it takes than `plan`, aim (medians)."""
    with workspace() as space:
        stack = space.stack("preflight", nodes=NODES, machines="none")
        settings = stack / "rehearsal.yaml"
        settings.write_text(f"{settings.read_text()}latency_ms: {LATENCY_MS}\n")
        seconds = []
        for words in (["plan", str(stack)], ["plan", str(stack), "--online"]):
            runs = [
                run([CLUSTERCTL, *words], env=space.env, cwd=str(space.folder), timeout_s=60) for _ in range(RUNS + 1)
            ]
            seconds.append(median_wall_s(runs[1:]))
    offline, online = seconds
    return [(str(NODES), f"{LATENCY_MS} ms", f"{online:.2f} s", f"{online - offline:.2f} s", AIM)]
