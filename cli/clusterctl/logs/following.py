"""Follows logs as they are written: reconnects to nodes, and holds each line for a moment to merge lines by time."""

from __future__ import annotations

import heapq
import queue
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from clusterctl_infra.outputs import InventoryNode

from clusterctl.logs.request import LogRequest, reader_command
from clusterctl.logs.stream import LogLine, NodeStream, SharedFiles
from clusterctl.ssh.failure_hints import failure_line
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.kept_running import KeptCommand, keep_running

HOLD_S = 0.5
"""How long a line waits for older lines from other nodes: twice the time after which a reader looks again."""
MOST_ITEMS = 2000
"""How many arrived lines may wait to be merged; until there are fewer, nothing more is read from the nodes."""
MOST_HELD = 20_000
"""How many lines may wait for older ones; if there are more, the oldest is shown without waiting any longer."""


@dataclass(frozen=True, kw_only=True)
class Notice:
    """A sentence for the person that is no log line."""

    name: str
    text: str


class End:
    """No node can send any further line."""


Item = LogLine | Notice | End


def followed(request: LogRequest) -> Iterator[LogLine | Notice]:
    """Lines and notices, until no node can ever send a line; the threads behind it end with the process."""
    following = Following(request)
    kept = KeptCommand(
        command=following.command, on_begin=following.begin, on_output=following.hear, on_lost=following.lost
    )
    keep_running(kept, request.inventory, request.nodes, keys=request.keys, deadlines=request.deadlines)
    return merged(following.next, since_s=request.since_s)


class Following:
    """The queue from the threads that read nodes to the one that shows their lines."""

    def __init__(self, request: LogRequest, *, now: Callable[[], float] = time.monotonic) -> None:
        self._request = request
        self._now = now
        self._arrived: queue.Queue[Item] = queue.Queue(MOST_ITEMS)
        shared = SharedFiles()
        self._streams = {
            node.slot: NodeStream(node, on_line=self._put, on_trouble=partial(self._tell, node), shared=shared)
            for node in request.nodes
        }
        self._heard_at: dict[int, float] = {}
        """Slot → when its reader last said something; only slots whose reader runs or is being started."""
        self._listened_at = 0.0
        """When we last resumed reading, after a full queue had kept us from reading any node."""
        self._over: set[int] = set()

    def command(self, node: InventoryNode) -> str:
        """The command that starts the reader where the node's last line ended."""
        return reader_command(self._request, self._streams[node.slot].places)

    def begin(self, node: InventoryNode) -> None:
        """Notes that a reader is being started on the node."""
        self._heard_at[node.slot] = self._now()
        self._streams[node.slot].begin()

    def hear(self, node: InventoryNode, chunk: bytes) -> None:
        """Takes what the node's reader printed; it prints something at least once a second."""
        if node.slot in self._heard_at:
            self._heard_at[node.slot] = self._now()
        self._streams[node.slot].feed(chunk)

    def lost(self, node: InventoryNode, why: NodeFailure, tries: int) -> bool:
        """Notes that the node's reader has ended; returns whether to start it again."""
        self._heard_at.pop(node.slot, None)
        if self._streams[node.slot].over >= set(self._request.sources):
            self._over.add(node.slot)
            if len(self._over) == len(self._request.nodes):
                self._put(End())
            return False
        if tries <= 1:
            self._tell(node, f"{failure_line(why, self._request.inventory, node)}; trying again")
        return True

    def next(self, timeout_s: float) -> Item | None:
        """The next item that has arrived, or that comes within `timeout_s`; else a notice of a silent node, or None."""
        try:
            return self._arrived.get(timeout=timeout_s)
        except queue.Empty:
            return self._silent()

    def _silent(self) -> Notice | None:
        """A notice of a node whose reader has been silent for too long, one for each silence.

        If the user's home is on a file system that hangs, a login hangs too, without an error.
        """
        for node in self._request.nodes:
            at = self._heard_at.get(node.slot)
            if at is not None and self._now() - max(at, self._listened_at) > self._request.timeout_s:
                self._heard_at.pop(node.slot, None)
                text = f"the log reader there has said nothing for {self._request.timeout_s:g} s; still waiting"
                return Notice(name=node.name, text=text)
        return None

    def _tell(self, node: InventoryNode, text: str) -> None:
        self._put(Notice(name=node.name, text=text))

    def _put(self, item: Item) -> None:
        """Adds an item to the queue. It waits while the queue is full, as when a person pauses in a pager.

        Then the connection's window fills, and the reader on the node waits, too.
        """
        try:
            self._arrived.put_nowait(item)
        except queue.Full:
            self._arrived.put(item)
            self._listened_at = self._now()


def merged(
    take: Callable[[float], Item | None],
    *,
    since_s: float | None = None,
    now: Callable[[], float] = time.monotonic,
) -> Iterator[LogLine | Notice]:
    """What `take(timeout_s)` gives: notices at once, lines in the order of their times, each after waiting `HOLD_S`."""
    held: list[tuple[float, int, float, LogLine]] = []
    count = 0
    is_end = False
    while held or not is_end:
        item = take(HOLD_S / 2)
        is_end = is_end or isinstance(item, End)
        if isinstance(item, Notice):
            yield item
        elif isinstance(item, LogLine) and (since_s is None or item.at_s >= since_s):
            count += 1
            heapq.heappush(held, (item.at_s, count, now() + HOLD_S, item))
        while held and (held[0][2] <= now() or len(held) > MOST_HELD):
            yield heapq.heappop(held)[3]
