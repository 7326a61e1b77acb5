"""What comes to a node with its membership: verbs that nobody needs before, and the watch over the node's end."""

import contextlib
import re
import sys
from pathlib import Path
from typing import List, Optional

from clusterctl_bootstrap.node import guard
from clusterctl_bootstrap.node.barrier import barrier
from clusterctl_bootstrap.node.files import write_atomically
from clusterctl_bootstrap.node.outside import Outside
from clusterctl_bootstrap.node.watch import PID, watch

BARRIER = re.compile(r"barrier ([\w.-]{1,64})(?: --timeout (\d{1,6})([smh]))?\Z", re.ASCII)
SECONDS = {"s": 1, "m": 60, "h": 3600}
NAME = "clusterctl-watch.service"
# A hook of the watch goes on when a push starts the watch anew.
UNIT = """\
[Unit]
Description=clusterctl: warns before the end of this machine
[Service]
ExecStart=/usr/local/bin/clusterctl-node watch
Restart=always
RestartSec=2
KillMode=process
OOMScoreAdjust=-900
SyslogIdentifier=clusterctl
"""
# Where there is no systemd: the watch before this one, known by its process id, is ended first.
DETACHED = (
    'read -r old <"$1" && grep -qz "^watch$" "/proc/$old/cmdline" && kill "$old"; '
    'setsid "$0" watch >/dev/null 2>&1 </dev/null &'
)


def run(arguments: List[str], root: Path, outside: Outside) -> Optional[int]:
    """The exit code of a verb that came later; None when there is no such verb."""
    waits = BARRIER.match(" ".join(arguments))
    if waits:
        return barrier(root, waits.group(1), int(waits.group(2) or 10) * SECONDS[waits.group(3) or "m"])
    if len(arguments) > 1 and arguments[0] == "barrier" and not BARRIER.match("barrier " + arguments[1]):
        told = "no name for a barrier: letters, digits, . _ and -, at most 64"
        print("clusterctl-node: %r is %s" % (arguments[1], told), file=sys.stderr)
    return watch(root, outside) if arguments == ["watch"] else None


def attend(root: Path, outside: Outside) -> None:
    """The watch runs, by the newest code and membership."""
    if not guard.applies(root):
        outside.run(["sh", "-c", DETACHED, "/usr/local/bin/clusterctl-node", str(root / PID)])
        return
    unit = root / "run/systemd/system" / NAME
    with contextlib.suppress(OSError):  # a membership is taken, whether there is a watch or not
        if not unit.exists() or unit.read_text() != UNIT:
            write_atomically(unit, UNIT)
            outside.run(["systemctl", "daemon-reload"])
    outside.run(["systemctl", "restart", "--no-block", NAME])
