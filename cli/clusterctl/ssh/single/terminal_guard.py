"""Ends what runs at a node's terminal when this computer is gone, as a closed connection does.

When a network is cut, the connection stays open on the node: sshd would wait for hours (TCP's keepalive), and the
command run on. The terminal's own channel has no room for beats, so a process beside the system's ssh sends them over a
second connection. When they stop, the session on the node is hung up (SIGHUP); what is meant to stay survives that.
"""

from __future__ import annotations

import os
import shlex
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.ssh.command import Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.fanout.canceller import Canceller
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.fanout.sinks import NodeSinks
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.watchdog import evaluated

LOOK_S = 0.5
_MARK = "clusterctl-terminal-"


@dataclass(frozen=True, kw_only=True)
class TerminalGuard:
    """What the process beside ssh needs to guard one session at a terminal."""

    inventory: Inventory
    node: InventoryNode
    keys: LoginKeys
    deadlines: Deadlines
    token: str
    """Names one session: hexadecimal digits."""

    def start(self) -> None:
        """Forks the process beside ssh, which ends with the caller; returns at once, and the caller may become ssh."""
        caller = os.getpid()
        if os.fork() != 0:
            return
        try:
            os.setsid()  # the terminal's signals are not meant for it
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nowhere, stream)
            self._watch(caller)
        finally:
            os._exit(0)

    def _watch(self, caller: int) -> None:
        canceller = Canceller()

        def end_with_caller() -> None:
            while os.getppid() == caller:
                time.sleep(LOOK_S)
            canceller.cancel()

        threading.Thread(target=end_with_caller, daemon=True, name="caller").start()
        run_on_nodes(
            self.inventory,
            [self.node],
            Command(line=watching_line(self.token)),
            keys=self.keys,
            deadlines=self.deadlines,
            sinks=NodeSinks(stdout=lambda node, chunk: None, stderr=lambda node, chunk: None),
            canceller=canceller,
        )


def marked(line: str, token: str) -> str:
    """The command line for the terminal, marked so that it is found; the shell stays, and gives the same exit code.

    The command runs in a shell of its own: an `exec` in it would otherwise replace the shell that has the mark.
    """
    return f": {_MARK}{token}; ({evaluated(line)}); exit"


def watching_line(token: str) -> str:
    """The command line that runs beside the session on the node until the session ends."""
    script = Path(__file__).with_name("terminal_guard.sh").read_text(encoding="utf-8")
    return "exec sh -c " + shlex.quote(f"mark='{_MARK}[{token[0]}]{token[1:]}'\n{script}")
