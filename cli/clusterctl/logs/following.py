"""Logs as they are written: each node followed over lost connections, lines merged by time while they wait a moment."""

from __future__ import annotations

import heapq
import queue
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from clusterctl_infra.outputs import InventoryNode

from clusterctl.logs.request import LogRequest, reader_command
from clusterctl.logs.stream import LogLine, NodeStream
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.many.kept_running import KeptCommand, keep_running
from clusterctl.ssh.reached import told_in_a_row

HOLD_S = 0.5
"""How long a line waits for older ones of other nodes: twice what a reader takes to look again."""


@dataclass(frozen=True, kw_only=True)
class Notice:
    """Something to tell beside the lines."""

    name: str
    text: str


def followed(request: LogRequest) -> Iterator[LogLine | Notice]:
    """Lines and notices for ever; the threads behind it end with the process."""
    arrived: queue.SimpleQueue[LogLine | Notice] = queue.SimpleQueue()

    def tell_of(node: InventoryNode) -> Callable[[str], None]:
        return lambda text: arrived.put(Notice(name=node.name, text=text))

    def lost(node: InventoryNode, why: NodeFailure, tries: int) -> None:
        if tries <= 1:
            tell_of(node)(f"{told_in_a_row(why, request.inventory, node)}; trying again")

    streams = {node.slot: NodeStream(node, on_line=arrived.put, on_trouble=tell_of(node)) for node in request.nodes}
    kept = KeptCommand(
        command=lambda node: reader_command(request, streams[node.slot].places),
        on_begin=lambda node: streams[node.slot].begin(),
        on_output=lambda node, chunk: streams[node.slot].feed(chunk),
        on_lost=lost,
    )
    keep_running(kept, request.inventory, request.nodes, keys=request.keys, deadlines=request.deadlines)
    return merged(lambda timeout_s: _next(arrived, timeout_s), since_s=request.since_s)


def merged(
    take: Callable[[float], LogLine | Notice | None],
    *,
    since_s: float | None = None,
    now: Callable[[], float] = time.monotonic,
) -> Iterator[LogLine | Notice]:
    """What `take(timeout)` gives, lines in the order of their times after each has waited `HOLD_S`."""
    held: list[tuple[float, int, float, LogLine]] = []
    count = 0
    while True:
        item = take(HOLD_S / 2)
        if isinstance(item, Notice):
            yield item
        elif item is not None and (since_s is None or item.at_s >= since_s):
            count += 1
            heapq.heappush(held, (item.at_s, count, now() + HOLD_S, item))
        while held and held[0][2] <= now():
            yield heapq.heappop(held)[3]


def _next(arrived: queue.SimpleQueue[LogLine | Notice], timeout_s: float) -> LogLine | Notice | None:
    try:
        return arrived.get(timeout=timeout_s)
    except queue.Empty:
        return None
