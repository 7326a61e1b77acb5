"""A fan-out done by the process that has the connections already."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from clusterctl_infra.outputs import InventoryNode

from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.guard import MOST_S
from clusterctl.ssh.many.sinks import NodeSinks
from clusterctl.ssh.results import NodeResult
from clusterctl.ssh.warm.frames import (
    ACCEPTED,
    HEAD,
    RESULT,
    STDERR,
    STDOUT,
    WarmJob,
    is_same_person,
    job_to_json,
    opened,
    result_from_json,
)

ANSWER_S = 2.0
"""A process that does not take the job in this time is left alone: a new connection is as quick."""


class WarmRun:
    """A job that was taken; `results` is its end."""

    def __init__(self, connection: socket.socket, nodes: dict[int, InventoryNode]) -> None:
        self._connection = connection
        self._reader = connection.makefile("rb")
        self._nodes = nodes

    def results(self, sinks: NodeSinks, on_result: Callable[[NodeResult], None] | None = None) -> dict[int, NodeResult]:
        """As `run_on_nodes`: output to the sinks, each result as it comes, KeyboardInterrupt after last words."""
        results: dict[int, NodeResult] = {}
        began_at = time.monotonic()
        with contextlib.closing(self._connection):
            try:
                while len(results) < len(self._nodes):
                    result = self._next(sinks)
                    if result is None:
                        break
                    results[result.slot] = result
                    if on_result is not None:
                        on_result(result)
            except BaseException:
                self._end(sinks)
                raise
        for slot, node in self._nodes.items():
            if slot not in results:
                result = _lost(node, time.monotonic() - began_at)
                results[slot] = result
                if on_result is not None:
                    on_result(result)
        return {slot: results[slot] for slot in self._nodes}

    def _next(self, sinks: NodeSinks) -> NodeResult | None:
        """The next result; None when the process has gone."""
        while len(head := self._reader.read(HEAD.size)) == HEAD.size:
            kind, slot, length = HEAD.unpack(head)
            data = self._reader.read(length)
            if kind == RESULT:
                return result_from_json(data)
            if kind in {STDOUT, STDERR}:
                (sinks.stderr if kind == STDERR else sinks.stdout)(self._nodes[slot], data)
        return None

    def _end(self, sinks: NodeSinks) -> None:
        """Has the commands ended, and passes on what they still say."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
            self._connection.settimeout(MOST_S)
            while self._next(sinks) is not None:
                pass


def hand_over(job: WarmJob, stdin: IO[bytes] | None, folder: Path) -> WarmRun | None:
    """The job under way elsewhere; None when nobody is there to take it."""
    if not folder.is_dir():
        return None
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(ANSWER_S)
    try:
        connection.connect(opened(folder))
        if not is_same_person(connection):
            raise OSError("somebody else's")
        descriptors = [stdin.fileno()] if stdin is not None else []
        socket.send_fds(connection, [b"j"], descriptors)
        connection.sendall(job_to_json(job))
        if connection.recv(1) != ACCEPTED:
            raise OSError("refused")
    except OSError:
        connection.close()
        return None
    connection.settimeout(None)
    slots = set(job.slots)
    return WarmRun(connection, {node.slot: node for node in job.inventory.nodes if node.slot in slots})


def _lost(node: InventoryNode, seconds: float) -> NodeResult:
    told = f"{node.name}: the background process that had the connection has ended"
    return NodeResult(
        slot=node.slot,
        name=node.name,
        exit_code=None,
        signal=None,
        failure=NodeFailure("lost", told, phase="command"),
        stdout=b"",
        stderr=b"",
        duration_s=seconds,
    )
