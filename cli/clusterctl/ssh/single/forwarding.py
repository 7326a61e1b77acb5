"""A port of a node on this computer's loopback, for as long as the person wants it: a notebook, TensorBoard.

The system's ssh carries it, started again where the connection is lost.
"""

from __future__ import annotations

import contextlib
import errno
import re
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from clusterctl_infra.errors import ClusterctlError, NotReached, UsageError
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.home import Home
from clusterctl.output import Output
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failure_hints import ended_at_deadline
from clusterctl.ssh.keys.login_keys import identities_for_ssh
from clusterctl.ssh.keys.openssh_files import login_key_file, write_known_hosts
from clusterctl.ssh.single.login import checked_target
from clusterctl.ssh.single.system_ssh import login_argv
from clusterctl.ssh.target import Target
from clusterctl.system.other_programs import ends_with_parent

LOOPBACK = "127.0.0.1"
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 15.0
END_S = 2.0
"""How long ssh may take to end when it is told to."""
MOST_PORT = 65535


@dataclass(frozen=True, kw_only=True)
class Ports:
    """The port here and the one on the node."""

    here: int
    there: int


def parse_ports(text: str) -> Ports:
    """`8888`, or `9999:8888` for another port here. Raises UsageError."""
    found = re.fullmatch(r"(?:(\d{1,5}):)?(\d{1,5})", text, re.ASCII)
    ports = [] if found is None else [int(found[1] or found[2]), int(found[2])]
    if not ports or not all(0 < port <= MOST_PORT for port in ports):
        message = f"{text!r} is no port: write 8888, or 9999:8888 for port 9999 here"
        raise UsageError(message, hint="clusterctl forward --help")
    return Ports(here=ports[0], there=ports[1])


def refuse_taken(ports: Ports) -> None:
    """Raises ClusterctlError where the port here is not free."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as ssh does: closed connections may still have it
        try:
            tried.bind((LOOPBACK, ports.here))
        except OSError as e:
            if e.errno == errno.EADDRINUSE:
                other = f"clusterctl forward {ports.here + 1 if ports.here < MOST_PORT else 8888}:{ports.there}"
                raise ClusterctlError(f"port {ports.here} is in use on this computer", hint=other) from e
            raise ClusterctlError(f"port {ports.here} cannot be opened on this computer: {e.strerror}") from e


def forward(
    inventory: Inventory, node: InventoryNode, ports: Ports, *, home: Home, deadlines: Deadlines, output: Output
) -> NoReturn:
    """Forwards the port until Ctrl-C.

    Raises ClusterctlError for a port in use, NotReached for a node that is not there or has ended.
    """
    refuse_taken(ports)
    target = checked_target(inventory, node, deadlines)
    keep_open(
        _argv(inventory, node, target, ports, home, deadlines),
        message=f"{LOOPBACK}:{ports.here} is port {ports.there} of {node.name}; Ctrl-C ends it",
        name=node.name,
        why_over=lambda: ended_at_deadline(inventory, datetime.now(UTC)),
        output=output,
    )


def keep_open(
    argv: Sequence[str],
    *,
    message: str,
    name: str,
    why_over: Callable[[], str | None],
    output: Output,
    sleep: Callable[[float], object] = time.sleep,
) -> NoReturn:
    """Runs ssh again whenever it ends. Raises NotReached where the port never opened, or with what `why_over` says."""
    wait_s, has_been_open = FIRST_WAIT_S, False
    while True:
        is_open, code = _run_once(argv, on_open=lambda: output.note(message))
        has_been_open = has_been_open or is_open
        if (ended := why_over()) is not None:
            raise NotReached(ended)
        if not has_been_open:
            raise NotReached(f"{name}: ssh ended (exit {code}) before the port was open; what it said stands above")
        wait_s = FIRST_WAIT_S if is_open else min(2 * wait_s, LONGEST_WAIT_S)
        output.note(f"{name}: the connection was lost; trying again in {wait_s:g} s")
        sleep(wait_s)


def _run_once(argv: Sequence[str], *, on_open: Callable[[], None]) -> tuple[bool, int]:
    """Whether the port was open, and ssh's exit code."""
    process = subprocess.Popen([*ends_with_parent(), *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        is_open = bool(process.stdout.readline())
        if is_open:
            on_open()
        return is_open, process.wait()
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
        if process.poll() is None:
            process.kill()


def _argv(
    inventory: Inventory, node: InventoryNode, target: Target, ports: Ports, home: Home, deadlines: Deadlines
) -> list[str]:
    return login_argv(
        target,
        key_file=login_key_file(inventory, home),
        own=identities_for_ssh(replace(inventory, nodes=(node,)), home, Path.home() / ".ssh"),
        known_hosts=write_known_hosts(inventory, home),
        connect_timeout_s=deadlines.total_s,
        silence_s=deadlines.silence_s,
        forward=f"{LOOPBACK}:{ports.here}:localhost:{ports.there}",
    )
