"""Logs as they are written: each node followed over lost connections, lines merged by time while they wait a moment."""

from __future__ import annotations

import heapq
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from clusterctl_infra.outputs import InventoryNode

from clusterctl.logs.request import LogRequest, reader_command
from clusterctl.logs.stream import LogLine, NodeStream
from clusterctl.ssh.fan_out import NodeSinks, run_on_nodes

HOLD_S = 0.5
"""How long a line waits for older ones of other nodes: twice what a reader takes to look again."""
AGAIN_S = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class Notice:
    """Something to tell beside the lines."""

    name: str
    text: str


def followed(request: LogRequest) -> Iterator[LogLine | Notice]:
    """Lines and notices for ever; the threads behind it end with the process."""
    arrived: queue.SimpleQueue[LogLine | Notice] = queue.SimpleQueue()
    for node in request.nodes:
        arguments = (request, node, arrived)
        threading.Thread(target=_follow, args=arguments, daemon=True, name=f"logs of {node.name}").start()
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


def _follow(request: LogRequest, node: InventoryNode, arrived: queue.SimpleQueue[LogLine | Notice]) -> None:
    def tell(text: str) -> None:
        arrived.put(Notice(name=node.name, text=text))

    stream = NodeStream(node, on_line=arrived.put, on_trouble=tell)
    tries = 0
    while True:
        why = _read(request, node, stream)
        tries = 0 if stream.rows else tries + 1
        if tries <= 1:
            tell(f"{why}; trying again")
        time.sleep(AGAIN_S[min(tries, len(AGAIN_S) - 1)])


def _read(request: LogRequest, node: InventoryNode, stream: NodeStream) -> str:
    """Reads over one connection to its end; gives the reason of the end."""
    stream.begin()
    complaint: list[bytes] = []
    result = run_on_nodes(
        request.inventory,
        (node,),
        reader_command(request, stream.places),
        keys=request.keys,
        deadlines=request.deadlines,
        sinks=NodeSinks(stdout=lambda _, chunk: stream.feed(chunk), stderr=lambda _, chunk: complaint.append(chunk)),
    )[node.slot]
    if result.failure is not None:
        return result.failure.message
    said = b"".join(complaint).decode(errors="replace").strip().splitlines()
    return said[-1] if said else f"the reader ended: exit {result.exit_code}"
