"""Logs as they are now, of all nodes, merged by time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from clusterctl.logs.request import LogRequest, reader_command
from clusterctl.logs.stream import LogLine, NodeStream
from clusterctl.ssh.fan_out import run_on_nodes
from clusterctl.ssh.results import NodeResult
from clusterctl.ssh.sinks import NodeSinks


def read_history(
    request: LogRequest, *, on_trouble: Callable[[str, str], None]
) -> tuple[Sequence[LogLine], Sequence[NodeResult]]:
    """All lines by time, and each node's result. `on_trouble` hears a node's name and what could not be read."""
    lines: list[LogLine] = []
    lock = threading.Lock()

    def keep(line: LogLine) -> None:
        if request.since_s is None or line.at_s >= request.since_s:
            with lock:
                lines.append(line)

    def tell_of(name: str) -> Callable[[str], None]:
        return lambda trouble: on_trouble(name, trouble)

    streams = {node.slot: NodeStream(node, on_line=keep, on_trouble=tell_of(node.name)) for node in request.nodes}
    results = run_on_nodes(
        request.inventory,
        request.nodes,
        reader_command(request, {}),
        keys=request.keys,
        deadlines=request.deadlines,
        sinks=NodeSinks(stdout=lambda node, chunk: streams[node.slot].feed(chunk), stderr=lambda node, chunk: None),
    )
    return sorted(lines, key=lambda line: (line.at_s, line.slot)), tuple(results.values())
