"""One node's reports to slot 0, over a connection that is made again whenever it ends."""

import contextlib
import json
import subprocess
import threading
import time
from typing import Any, Dict, List, Optional

from clusterctl_bootstrap.node.writing import USER

AGENT = "/usr/local/bin/clusterctl-node"
SSH = ["ssh", "-T", "-F", "/etc/ssh/ssh_config", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]
SSH += ["-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3", "-o", "ControlPath=none"]
AGAIN_S = 10.0


def argv(known: Dict[str, Any], slot: int, every_s: float) -> List[str]:
    """The command that starts a node's part; its own without SSH."""
    if slot == known["slot"]:
        return [AGENT, "idle-report", "%g" % every_s, "0.0.0.0", "0"]
    # $SSH_CONNECTION: address and port of this side, address and port of that one (ssh(1)).
    command = "exec sudo -n %s idle-report %g $SSH_CONNECTION" % (AGENT, every_s)
    return [*SSH, "%s@%s-%d" % (USER, known["cluster"], slot), command]


class Peer:
    """What is heard of one node; a thread of its own reads it."""

    def __init__(self, argv: List[str]) -> None:
        self.argv = argv
        self.report: Dict[str, Any] = {}
        self.reported_s = float("-inf")
        self.seen_s = time.monotonic()
        self.process: Optional[subprocess.Popen[str]] = None
        self.is_stopped = threading.Event()
        threading.Thread(target=self._read_on, daemon=True).start()

    def say(self, line: str) -> None:
        """Sends a line; a node that does not get it goes on as before."""
        process = self.process
        with contextlib.suppress(OSError, ValueError):
            if process is not None and process.stdin is not None:
                print(line, file=process.stdin, flush=True)

    def stop(self) -> None:
        """Hangs up, which ends the node's part."""
        self.is_stopped.set()
        if self.process is not None:
            self.process.kill()

    def _read_on(self) -> None:
        pipe = subprocess.PIPE
        while not self.is_stopped.is_set():
            with (
                contextlib.suppress(OSError),
                subprocess.Popen(
                    self.argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, universal_newlines=True
                ) as self.process,
            ):
                for line in self.process.stdout or ():
                    with contextlib.suppress(ValueError, LookupError, TypeError):
                        self._take(json.loads(line))
                self.process.kill()
            self.reported_s = float("-inf")
            self.is_stopped.wait(AGAIN_S)

    def _take(self, report: Dict[str, Any]) -> None:
        self.report = newest(report, self.report)
        self.reported_s = self.seen_s = time.monotonic()


def newest(report: Dict[str, Any], before: Dict[str, Any]) -> Dict[str, Any]:
    """The report that came, marked with the last question that it is younger than. Raises LookupError, ValueError.

    A node answers a question by one report. What it says later answers it as well, and while slot 0 waits for others
    it says more.
    """
    return {
        "generation": int(report["generation"]),
        "quiet_s": float(report["quiet_s"]),
        "signs": [str(sign) for sign in report["signs"]],
        "saves": bool(report["saves"]),
        "asked": max(int(report["asked"]), int(before.get("asked", 0))),
    }
