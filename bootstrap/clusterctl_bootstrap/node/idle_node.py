"""One node's part of the idle rule: reports to slot 0 what it sees of itself, and does what slot 0 decides.

Slot 0 starts it over SSH and hangs up when it is done. A line of JSON goes out at each look; lines come in:
`look N` asks for a look now, `warn TEXT` tells everybody on this machine, `end REASON` ends it.
"""

import contextlib
import json
import os
import select
import sys
from pathlib import Path
from typing import List, Optional, Tuple

from clusterctl_bootstrap.node import facts as facts_file
from clusterctl_bootstrap.node import register, warning
from clusterctl_bootstrap.node.files import write_atomically
from clusterctl_bootstrap.node.idle_judge import Reading, signs_of_life
from clusterctl_bootstrap.node.idle_signals import read
from clusterctl_bootstrap.node.outside import Outside
from clusterctl_bootstrap.node.person_hook import FOLDER, PRE_TERMINATE

WANTED = "run/clusterctl/idle-end"
"""Holds why this machine is to end, once all nodes have agreed; the watch over its end sees to it."""
LEAST_S = 1.0
"""The least time between two looks: a shorter one gives no meaningful rate."""


class Node:
    """What this node knows of how long it has been quiet."""

    def __init__(self, root: Path, own: Tuple[str, int], outside: Outside) -> None:
        self.root = root
        self.own = own
        self.outside = outside
        self.before: Optional[Reading] = None
        self.quiet_since_s = outside.monotonic()

    def look(self, asked: int = 0) -> str:
        """The report: how long no signal has shown life, and what does now."""
        known = facts_file.present(self.root)
        if self.before is not None and self.outside.monotonic() - self.before.at_s < LEAST_S:
            self.outside.sleep(LEAST_S)
        now = read(self.root, int(known["gpus_per_node"]), self.own, self.outside)
        signs = signs_of_life(self.before, now)
        self.before = now
        if signs:
            self.quiet_since_s = now.at_s
        report = {
            "generation": known["generation"],
            "quiet_s": round(now.at_s - self.quiet_since_s, 1),
            "signs": signs,
            "saves": (self.root / FOLDER / PRE_TERMINATE).exists() or any(register.asking(self.root)),
            "asked": asked,
        }
        return json.dumps(report)


def wanted_end(root: Path) -> str:
    """Why the idle rule wants this machine to end; empty while it does not."""
    with contextlib.suppress(FileNotFoundError):
        return (root / WANTED).read_text()
    return ""


def report(root: Path, interval_s: float, own: Tuple[str, int], outside: Outside) -> int:
    """Reports until slot 0 hangs up; returns 0."""
    node = Node(root, own, outside)
    asked = 0
    while True:
        print(node.look(asked), flush=True)
        lines = _heard(interval_s)
        if lines is None:
            return 0
        asked = 0
        for line in lines:
            word, _, rest = line.partition(" ")
            if word == "look":
                asked = int(rest)
            elif word == "warn":
                warning.tell(root, rest)
            elif word == "end":
                write_atomically(root / WANTED, rest)


def _heard(interval_s: float) -> Optional[List[str]]:
    """What slot 0 said within the time; None when it hung up."""
    if not select.select([sys.stdin], [], [], interval_s)[0]:
        return []
    data = os.read(sys.stdin.fileno(), 4096)
    return data.decode("utf-8", "replace").splitlines() if data else None
