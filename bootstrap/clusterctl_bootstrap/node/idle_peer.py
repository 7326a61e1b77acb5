"""One node's reports to slot 0, over a connection that is made again whenever it ends."""

import contextlib
import subprocess
import threading
import time
from typing import Any, Dict, List, Optional, Protocol

from clusterctl_bootstrap.node.received import is_seconds, is_whole, parsed, printable
from clusterctl_bootstrap.node.writing import USER

AGENT = "/usr/local/bin/clusterctl-node"
SSH = ["ssh", "-T", "-F", "/etc/ssh/ssh_config", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]
SSH += ["-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3", "-o", "ControlPath=none"]
AGAIN_S = 10.0
LONGEST_LINE, MOST_BRACKETS, MOST_SIGNS = 65536, 500, 100
"""Limits of a report; what it says about an unreadable signal may have brackets in it."""
LONGEST_S, HIGHEST = 1e9, 10**12


def argv(known: Dict[str, Any], slot: int, every_s: float) -> List[str]:
    """The command that starts a node's part; slot 0 starts its own without SSH."""
    if slot == known["slot"]:
        return [AGENT, "idle-report", "%g" % every_s, "0.0.0.0", "0"]
    # $SSH_CONNECTION: address and port of this side, address and port of that one (ssh(1)).
    command = "exec sudo -n %s idle-report %g $SSH_CONNECTION" % (AGENT, every_s)
    return [*SSH, "%s@%s-%d" % (USER, known["cluster"], slot), command]


class Reporter(Protocol):
    """A node as slot 0 hears of it."""

    report: Dict[str, Any]
    reported_s: float
    seen_s: float

    def say(self, line: str) -> None:
        """Sends a line."""

    def stop(self) -> None:
        """Hangs up."""


class Peer:
    """The reports of one node, which a thread of its own reads."""

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
                    self.argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, encoding="utf-8", errors="replace"
                ) as self.process,
            ):
                self._take_reports(self.process.stdout)
                self.process.kill()
            self.reported_s = float("-inf")
            self.is_stopped.wait(AGAIN_S)

    def _take_reports(self, lines: Any) -> None:
        """Takes reports until the node hangs up, or says more in a line than a report has."""
        while True:
            line = lines.readline(LONGEST_LINE)
            if not line.endswith("\n"):
                return
            with contextlib.suppress(ValueError):
                self.report = newest(parsed(line, LONGEST_LINE, MOST_BRACKETS), self.report)
                self.reported_s = self.seen_s = time.monotonic()


def newest(report: Any, before: Dict[str, Any]) -> Dict[str, Any]:
    """The report that came, marked with the number of the last question that it answers. Raises ValueError.

    A node answers a question by one report. Its later reports answer the question, too: more of them come while slot 0
    waits for other nodes.
    """
    if not _is_report(report):
        raise ValueError("no report of a node")
    return {
        "generation": report["generation"],
        "quiet_s": float(report["quiet_s"]),
        "signs": [printable(sign) for sign in report["signs"][:MOST_SIGNS]],
        "saves": report["saves"],
        "asked": max(report["asked"], before.get("asked", 0)),
    }


def _is_report(report: Any) -> bool:
    """Whether each field of a report is there, with the right type and size."""
    return (
        isinstance(report, dict)
        and all(is_whole(report.get(key), 0, HIGHEST) for key in ("generation", "asked"))
        and is_seconds(report.get("quiet_s"), LONGEST_S)
        and isinstance(report.get("signs"), list)
        and isinstance(report.get("saves"), bool)
    )
