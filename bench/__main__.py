"""Prints the tables asked for by name, as in `scripts/bench fanout`; without arguments, all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from bench import api, barrier, before, engine, fanout, jobs, preflight, rehearsed, round_trips, since, startup, top
from bench.machine import describe_machine

Table = Callable[[], list[tuple[str, ...]]]

TABLES: dict[str, tuple[Table, tuple[str, ...]]] = {
    "startup": (startup.table, ("command", "median", "over python", "aim")),
    "api": (api.table, ("what", "median", "difference", "aim")),
    "barrier": (barrier.table, ("who comes last", "who waits", "time until all have gone on", "aim")),
    "rehearsed": (rehearsed.table, ("machines", "nodes", "up → all ready", "aim", "down", "aim")),
    "run": (
        jobs.table,
        (
            "a job with one process on each of four nodes (medians of 5), unless the row names a larger one",
            "measured",
            "aim",
        ),
    ),
    "top": (top.table, ("nodes × GPUs", "interval", "CPU", "memory", "aim")),
    "fanout": (fanout.table, ("servers", "tool", "median", "× Go", "processor", "peak MiB", "aim")),
    "round-trips": (round_trips.table, ("tool", "round trips, not counting TCP's handshake", "aim")),
    "preflight": (preflight.table, ("nodes", "delay of each AWS call", "plan --online", "more than plan", "aim")),
    "before": (before.table, ("what", "then", "now", "ratio (of each round)", "aim")),
    "since": (since.table, ("what", "then", "now", "difference or ratio", "aim")),
    "engine": (
        engine.table,
        (
            "nodes",
            "resources",
            "preview",
            "pulumi up",
            "clusterctl up",
            "clusterctl down",
            "bare up",
            "clusterctl up / bare up",
            "peak of pulumi up",
            "peak of clusterctl up",
        ),
    ),
}


def main(names: Sequence[str]) -> int:
    """0 when every table was printed; 2 for a name that is no table."""
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        print(f"no such table: {', '.join(unknown)} (there are: {', '.join(TABLES)})", file=sys.stderr)
        return 2
    print(f"{describe_machine()}\n", flush=True)
    for name in names or TABLES:
        rows, heads = TABLES[name][0](), TABLES[name][1]
        print(f"### {name}\n\n{_markdown(heads, rows)}\n", flush=True)
    return 0


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
