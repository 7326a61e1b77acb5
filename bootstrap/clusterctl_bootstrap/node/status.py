"""status.json: which phase this node is in, since when, and what went wrong."""

import json
import os
import select
import sys
from pathlib import Path
from typing import Any, Dict, Optional

from clusterctl_bootstrap.node import facts as facts_file
from clusterctl_bootstrap.node.files import locked, now, write_atomically

POLL_S = 0.1
HISTORY_LENGTH = 20


def begin(root: Path) -> None:
    """Begins the status of a boot: its history is empty, and what an earlier boot noted holds no longer."""
    mark = root / "run/clusterctl/boot-id"
    if not mark.exists():  # made by the boothook, where there is one
        write_atomically(mark, Path("/proc/sys/kernel/random/uuid").read_text())
    with locked(root):
        _write(root, dict(_booting(), boot_id=_boot_id(root)))


def enter(root: Path, phase: str, error: Optional[Dict[str, Any]] = None) -> None:
    """Records that the node is in `phase` from now on; it is on disk when this returns.

    `error`: the phase that failed, its message, and the last lines of the log.
    """
    with locked(root):
        data = _read(root)
        data.update(phase=phase, since=now(), error=error)
        data["history"] = [*data["history"], {"phase": phase, "at": now()}][-HISTORY_LENGTH:]
        _write(root, data)


def note(root: Path, **values: Any) -> None:
    """Adds what a phase found out, until the next boot begins."""
    with locked(root):
        _write(root, dict(_read(root), **values))


def refresh(root: Path) -> None:
    """Notes generation and deadline, which a push may change in any phase. The caller holds the lock."""
    _write(root, _read(root))


def line(root: Path) -> str:
    """status.json as one line; `booting` while this boot has not written one."""
    return json.dumps(_read(root))


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


def _read(root: Path) -> Dict[str, Any]:
    try:
        data = facts_file.read_json(root / "etc/clusterctl/status.json")
    except facts_file.FactsError:
        return _booting()
    return data if data.get("boot_id") == _boot_id(root) else _booting()


def _write(root: Path, data: Dict[str, Any]) -> None:
    try:
        known = facts_file.present(root)
        data.update({key: known.get(key) for key in ("generation", "deadline", "agent")})
        data["membership"] = facts_file.membership_hash(known)
    except facts_file.FactsError:
        pass  # the phase that needs the facts says so
    write_atomically(root / "etc/clusterctl/status.json", json.dumps(data) + "\n")


def _booting() -> Dict[str, Any]:
    empty: Dict[str, Any] = {"since": None, "boot_id": None, "generation": 0, "deadline": None, "error": None}
    return dict(empty, version=1, phase="booting", history=[])


def _boot_id(root: Path) -> Optional[str]:
    """An id for this boot; not the kernel's own, which a container shares with its host."""
    try:
        return (root / "run/clusterctl/boot-id").read_text().strip()
    except OSError:
        return None
