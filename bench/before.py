"""What `clusterctl up` costs now and what it cost at an earlier revision, in turns on one machine."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.timing import Timing, run
from bench.workspace import CLUSTERCTL, ROOT, workspace

REVISION, NODES, ROUNDS = "BENCH_BEFORE", "BENCH_NODES", "BENCH_ROUNDS"
"""`BENCH_BEFORE=v0.3 BENCH_NODES=64 BENCH_ROUNDS=2 scripts/bench before` measures smaller clusters, and fewer of
them."""
DEFAULT_REVISION = "1b56584e"
"""The commit before roles, networks and capacity were made as a first account needs them (2026-11-23)."""
AIM = "\u2264 1.05"
WARM_NODES = 2


@dataclass(frozen=True, kw_only=True)
class Up:
    """One `up`, and how large the state is that it wrote."""

    timing: Timing
    state_mib: float


Pair = tuple[Up, Up]


def table() -> list[tuple[str, ...]]:
    """Rows: what was measured, its median then and now, the ratio with that of each round, the aim."""
    nodes, rounds = int(os.environ.get(NODES, "256")), int(os.environ.get(ROUNDS, "3"))
    with checkout(os.environ.get(REVISION, DEFAULT_REVISION)) as then:
        for tree in (then, ROOT):  # not counted: the first run compiles the modules
            _up(tree, WARM_NODES)
        pairs = [_pair(then, ROOT, nodes, is_odd=number % 2 == 1) for number in range(rounds)]
    return [
        _row(f"{nodes} nodes, up", pairs, lambda up: up.timing.wall_s, "s"),
        _row("its processor time", pairs, lambda up: up.timing.cpu_s, "s"),
        _row("its largest process", pairs, lambda up: up.timing.peak_mib, "MiB"),
        _row("its state", pairs, lambda up: up.state_mib, "MiB"),
    ]


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """A folder with the files of a revision, and this checkout's environment."""
    folder = Path(tempfile.mkdtemp(prefix="clusterctl-revision-"))
    try:
        packed = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, capture_output=True, timeout=60)
        subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True, timeout=60)
        (folder / ".venv").symlink_to((ROOT / ".venv").resolve())
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pair(then: Path, now: Path, nodes: int, *, is_odd: bool) -> Pair:
    """`up` of both revisions, one after the other; in odd rounds the present one goes first."""
    if is_odd:
        later = _up(now, nodes)
        return _up(then, nodes), later
    return _up(then, nodes), _up(now, nodes)


def _up(tree: Path, nodes: int) -> Up:
    with workspace(tree) as space:
        stack = space.stack(f"then{nodes}", nodes=nodes, machines="none")
        timing = run([CLUSTERCTL, "up", str(stack)], env=space.env, cwd=str(stack), timeout_s=600)
        states = (space.folder / "pulumi-state" / ".pulumi" / "stacks").rglob("*.json")
        return Up(timing=timing, state_mib=max(file.stat().st_size for file in states) / 2**20)


def _row(what: str, pairs: Sequence[Pair], of: Callable[[Up], float], unit: str) -> tuple[str, ...]:
    """The medians then and now, and the median of the rounds' ratios, with each round's ratio."""
    thens, nows = [of(then) for then, _ in pairs], [of(now) for _, now in pairs]
    ratios = [now / then for then, now in zip(thens, nows, strict=True)]
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    before, after = (f"{statistics.median(values):.1f} {unit}" for values in (thens, nows))
    return what, before, after, f"{statistics.median(ratios):.2f} ({each})", AIM
