"""Ends the region's server: asks it to stop, or kills it if it is too old, does not answer, or has lost its files.

Machines live on; the next server takes them over.
"""

from __future__ import annotations

import signal
import time

from clusterctl_infra.names import CHECKS_SIGNATURES

from clusterctl_rehearsal.home import RehearsalHome
from clusterctl_rehearsal.machines.driver import MachineError
from clusterctl_rehearsal.machines.owners import regions_of
from clusterctl_rehearsal.machines.processes import send, wait_until_gone
from clusterctl_rehearsal.region.client import RegionClient, RegionUnreachable, running_region

STOP_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 5.0
"""For each try; a server that is stopped (SIGSTOP) accepts connections and never answers."""
POLL_S = 0.02


def end_region(home: RehearsalHome) -> None:
    """Returns when no server of this home runs. Raises MachineError, RegionUnreachable where one cannot be ended."""
    found = running_region(home)
    servers = regions_of(home.machines)
    if found is not None:
        try:
            _ask_to_stop(home, is_current=bool(found.get(CHECKS_SIGNATURES)))
        except RegionUnreachable:
            if found["pid"] not in servers:  # the process in region.json is not a known server
                raise
    for server in servers:
        if running_region(home) is not None or server != (found or {}).get("pid"):
            send(server, signal.SIGKILL)
        if not wait_until_gone(server):
            raise MachineError(f"the region's server (process {server}) does not end", f"kill -9 {server}")
    if found is not None and not _wait_until_gone(home):  # the lock outlives the process by a moment
        raise MachineError("the region's server does not end", f"kill {found['pid']}")


def _ask_to_stop(home: RehearsalHome, *, is_current: bool) -> None:
    """Asks the server to stop, and waits for that. An older one is not asked: its requests may differ."""
    if not is_current:
        return
    with RegionClient(home, timeout_s=ANSWER_TIMEOUT_S) as client:
        client.ask("fault", {"verb": "stop-region", "args": []})
    _wait_until_gone(home)


def _wait_until_gone(home: RehearsalHome) -> bool:
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while running_region(home) is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True
