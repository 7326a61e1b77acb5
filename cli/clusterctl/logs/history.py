"""Reads the logs of all nodes as they are now, and merges them by time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clusterctl.logs.request import LogRequest, reader_command
from clusterctl.logs.stream import LogLine, NodeStream, SharedFiles
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.fanout.sinks import NodeSinks
from clusterctl.ssh.results import NodeResult


@dataclass(frozen=True, kw_only=True)
class History:
    """What was read of the logs."""

    lines: Sequence[LogLine]
    """Sorted by time."""
    results: Sequence[NodeResult]
    """How reading ended on each node."""
    missing: Sequence[str]
    """The nodes that lack a source that was asked for."""


def read_history(request: LogRequest, *, on_trouble: Callable[[str, str], None]) -> History:
    """Reads all that is asked for. `on_trouble` is called with a node's name and what could not be read there."""
    lines: list[LogLine] = []
    lock = threading.Lock()

    def keep(line: LogLine) -> None:
        if request.since_s is None or line.at_s >= request.since_s:
            with lock:
                lines.append(line)

    def tell_of(name: str) -> Callable[[str], None]:
        return lambda trouble: on_trouble(name, trouble)

    shared = SharedFiles()
    streams = {
        node.slot: NodeStream(node, on_line=keep, on_trouble=tell_of(node.name), shared=shared)
        for node in request.nodes
    }
    results = run_on_nodes(
        request.inventory,
        request.nodes,
        reader_command(request, {}),
        keys=request.keys,
        deadlines=request.deadlines,
        timeout_s=request.timeout_s,
        sinks=NodeSinks(stdout=lambda node, chunk: streams[node.slot].feed(chunk), stderr=lambda node, chunk: None),
    )
    return History(
        lines=sorted(lines, key=lambda line: (line.at_s, line.slot)),
        results=tuple(results.values()),
        missing=[node.name for node in request.nodes if streams[node.slot].missing],
    )
