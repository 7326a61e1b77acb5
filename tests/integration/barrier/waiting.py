"""Nodes that exist only as files and an address of this computer: what a start barrier needs of them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from clusterctl_bootstrap.node.barrier import NotMet, Wait

ROOT = Path(__file__).parents[3]
SECRET = bytes(range(32))
PATIENCE_S = 30


@dataclass(frozen=True, kw_only=True)
class Hall:
    """Some nodes of one cluster, all at one address of the loopback network that is this test's own."""

    folder: Path
    address: str
    nodes: int
    _children: list[subprocess.Popen[str]] = field(default_factory=list)

    def facts(self, slot: int, **changes: object) -> dict[str, object]:
        """node.json of a slot, as far as the barrier reads it."""
        known = {"cluster": "train", "slot": slot, "nodes": self.nodes, "generation": 3, "master_addr": self.address}
        return {**known, **changes}

    def wait(self, slot: int, name: str = "start", *, timeout_s: float = PATIENCE_S, **changes: object) -> Wait:
        """A slot's wait in this process, with other facts if wanted."""
        return Wait(self.facts(slot, **changes), SECRET, name, timeout_s)

    def process(self, slot: int, name: str = "start", *, timeout: str = "30s", **changes: object) -> Node:
        """`clusterctl-node barrier` as a process of its own."""
        root = self.folder / f"slot-{slot}"
        (root / "etc/clusterctl").mkdir(parents=True, exist_ok=True)
        (root / "etc/clusterctl/node.json").write_text(json.dumps(self.facts(slot, **changes)))
        (root / "etc/clusterctl/barrier").write_bytes(SECRET)
        child = subprocess.Popen(
            [sys.executable, "-m", "clusterctl_bootstrap.node", "barrier", name, "--timeout", timeout],
            env={**os.environ, "CLUSTERCTL_NODE_ROOT": str(root), "PYTHONPATH": str(ROOT / "bootstrap")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._children.append(child)
        return Node(child=child)

    def end(self) -> None:
        """Nothing that was started lives on."""
        for child in self._children:
            child.kill()
            child.communicate()


@dataclass(frozen=True, kw_only=True)
class Node:
    """A process that waits."""

    child: subprocess.Popen[str]

    def ended(self) -> tuple[int, str, str]:
        """Exit code, stdout and stderr, once it has ended."""
        out, err = self.child.communicate(timeout=PATIENCE_S)
        return self.child.returncode, out, err

    def kill(self) -> None:
        """As a crash ends it."""
        self.child.kill()
        self.child.wait()


class Threads:
    """Waits that run beside each other in this process."""

    def __init__(self) -> None:
        self.outcomes: dict[int, str] = {}
        self._threads: list[threading.Thread] = []

    def start(self, wait: Wait) -> Wait:
        """Begins to wait; the outcome is `met` or the reason."""
        number = len(self._threads)

        def run() -> None:
            try:
                wait.meet()
            except NotMet as e:
                self.outcomes[number] = f"{e.args[0]}: {e.args[1]}"
            else:
                self.outcomes[number] = "met"

        self._threads.append(threading.Thread(target=run, daemon=True))
        self._threads[-1].start()
        return wait

    def joined(self) -> list[str]:
        """All outcomes, in the order in which they were started."""
        for thread in self._threads:
            thread.join(PATIENCE_S)
        return [self.outcomes.get(number, "still waits") for number in range(len(self._threads))]


@contextlib.contextmanager
def a_hall(folder: Path, address: str, nodes: int) -> Iterator[Hall]:
    """A hall whose processes end with the block."""
    hall = Hall(folder=folder, address=address, nodes=nodes)
    try:
        yield hall
    finally:
        hall.end()
