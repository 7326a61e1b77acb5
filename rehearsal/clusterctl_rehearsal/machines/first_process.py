"""Process number 1 of an unprivileged machine: sshd, the node agent, and the clock.

Run inside the machine, by path: standard library only, nothing of this package. Ends with
0 on SIGTERM (power off), 3 when the node's deadline has passed, 133 on SIGHUP (reboot); the
kernel ends the rest of the machine with it.
"""

from __future__ import annotations

import datetime
import json
import os
import select
import signal
import subprocess
import sys
import time

AGENT = "/usr/local/bin/clusterctl-node"
SSHD = ("/usr/sbin/sshd", "-D", "-e", "-f", "/etc/ssh/clusterctl_sshd_config")
NODE_FILES = ("/etc/clusterctl/node.json", "/var/lib/clusterctl/birth.json")
DEADLINE_EXIT_CODE = 3
REBOOT_EXIT_CODE = 133
_TICK_S = 0.5
_EXIT_CODES = {int(signal.SIGTERM): 0, int(signal.SIGHUP): REBOOT_EXIT_CODE}


def main() -> int:
    """Run the machine until it has to end; returns the exit code that says why."""
    wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waker)
    for number in (*_EXIT_CODES, signal.SIGCHLD):
        signal.signal(number, _noted)
    sshd = _start(SSHD)
    if os.path.exists(AGENT):
        _start((AGENT, "boot"))
    while True:
        select.select([wake], [], [], _TICK_S)
        for number in _read(wake):
            if number in _EXIT_CODES:
                return _EXIT_CODES[number]
        if sshd in _reaped():
            time.sleep(1)  # as its systemd unit would
            sshd = _start(SSHD)
        if is_past(deadline(NODE_FILES), time.time()):
            print("the deadline has passed", flush=True)
            return DEADLINE_EXIT_CODE


def deadline(paths: tuple[str, ...]) -> str | None:
    """The deadline in the first file that has one, as text (ISO, UTC)."""
    for path in paths:
        try:
            with open(path) as file:
                found = json.load(file).get("deadline")
        except (OSError, ValueError):  # not written yet, or being written
            continue
        if isinstance(found, str):
            return found
    return None


def is_past(deadline_iso: str | None, now: float) -> bool:
    """Whether a deadline is over; none, or one that cannot be read, never is."""
    if deadline_iso is None:
        return False
    try:
        moment = datetime.datetime.fromisoformat(deadline_iso.replace("Z", "+00:00"))
    except ValueError:
        return False
    return moment.timestamp() <= now


def _noted(number: int, frame: object) -> None:
    """Do nothing: for a signal with a handler, Python writes its number to the wake-up pipe, which the loop reads."""


def _read(wake: int) -> bytes:
    try:
        return os.read(wake, 100)
    except BlockingIOError:
        return b""


def _start(argv: tuple[str, ...]) -> int:
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True).pid


def _reaped() -> set[int]:
    ended: set[int] = set()
    while True:
        try:
            process_id, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if process_id == 0:
            return ended
        ended.add(process_id)


if __name__ == "__main__":
    sys.exit(main())
