"""When this machine ends, as far as it knows by itself: the deadline that its guard counts to, and the idle rule."""

import contextlib
import time
from pathlib import Path
from typing import NamedTuple

from clusterctl_bootstrap.node import facts as facts_file
from clusterctl_bootstrap.node import guard
from clusterctl_bootstrap.node.files import write_atomically
from clusterctl_bootstrap.node.outside import Outside

LAST_STAGE = "run/clusterctl/last-stage-at"
LAST_STAGE_S = 90
"""How long after the end the guard's last stage is due."""
DEADLINE = "its deadline"
GUARD, WATCH, AWS = "guard", "watch", "AWS"
"""Who ends this machine."""


class End(NamedTuple):
    """An end: `at` by the clock that it is counted with, which is not the same for all ends."""

    at: float
    left_s: float
    why: str
    by: str = GUARD


def deadline(root: Path) -> End:
    """The deadline that holds now, counted as the guard counts it. Raises FactsError, ValueError or OSError."""
    if (root / LAST_STAGE).exists():
        clock, due = (root / LAST_STAGE).read_text().split()
        at = int(due) - LAST_STAGE_S
        return End(at, at - (uptime_s(root) if clock == "uptime" else time.time()), DEADLINE)
    at = facts_file.epoch(facts_file.present(root)["deadline"])  # a process machine has no guard
    return End(at, at - time.time(), DEADLINE)


def uptime_s(root: Path) -> float:
    """Seconds since this machine's kernel started."""
    return float((root / "proc/uptime").read_text().split()[0])


def idle_limit_s(root: Path) -> float:
    """After how many seconds without use this node has to end its cluster; 0 if it need not. Raises FactsError."""
    pushed = facts_file.pushed(root) or {}
    return float(pushed.get("idle_s") or 0) if facts_file.birth(root)["slot"] == 0 else 0.0


def end_now(root: Path, outside: Outside) -> None:
    """Ends this machine before its deadline; the guard's last stage is due soon after, in case the shutdown hangs."""
    if not guard.applies(root):
        outside.run(["sh", "-c", "kill 1"])
        return
    with contextlib.suppress(OSError):  # nothing may keep it from ending
        write_atomically(root / LAST_STAGE, "uptime %d\n" % (uptime_s(root) + LAST_STAGE_S))
    outside.run(["systemctl", "poweroff", "--force"])
