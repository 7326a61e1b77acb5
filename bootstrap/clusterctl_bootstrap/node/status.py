"""status.json: which phase this node is in, since when, and what went wrong."""

import json
import os
import select
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Optional

from clusterctl_bootstrap.node.files import write_atomically

POLL_S = 0.1


class Status:
    """Records phases; every change is on disk before the next step begins."""

    def __init__(self, root: Path, boot_id: str) -> None:
        self.path = root / "etc/clusterctl/status.json"
        self.data: Dict[str, Any] = {"version": 1, "boot_id": boot_id, "generation": 0, "deadline": None, "history": []}

    def enter(self, phase: str, facts: Optional[Dict[str, Any]] = None) -> None:
        """The node is in `phase` from now on."""
        if facts is not None:
            self.data.update(generation=facts["generation"], deadline=facts["deadline"])
        self.data["history"] = [*self.data["history"][-19:], {"phase": phase, "at": now()}]
        self._write(phase, None)

    def fail(self, phase: str, message: str, log: List[str]) -> None:
        """The node failed in `phase`; `log` are the last lines that say more."""
        self._write("failed", {"phase": phase, "message": message, "log": log})

    def _write(self, phase: str, error: Optional[Dict[str, Any]]) -> None:
        self.data.update(phase=phase, since=now(), error=error)
        write_atomically(self.path, json.dumps(self.data) + "\n")


def refresh(root: Path, facts: Dict[str, Any]) -> None:
    """Notes a new generation and deadline in a status that otherwise stays as it is."""
    path = root / "etc/clusterctl/status.json"
    data = json.loads(line(root))
    data.update(generation=facts["generation"], deadline=facts["deadline"])
    write_atomically(path, json.dumps(data) + "\n")


def line(root: Path) -> str:
    """status.json as one line; before there is one, the phase `booting`."""
    try:
        return (root / "etc/clusterctl/status.json").read_text().strip()
    except OSError:
        return json.dumps({"version": 1, "phase": "booting", "generation": 0, "error": None, "history": []})


def follow(root: Path) -> None:
    """Prints the status now and at each change, until standard input ends."""
    shown = None
    while True:
        current = line(root)
        if current != shown:
            print(current, flush=True)
            shown = current
        if select.select([sys.stdin], [], [], POLL_S)[0] and not os.read(sys.stdin.fileno(), 4096):
            return


def now() -> str:
    """The time, ISO 8601 in UTC to the second."""
    return datetime.fromtimestamp(time.time(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
