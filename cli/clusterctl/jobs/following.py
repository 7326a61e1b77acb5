"""A job's output and states, from all its nodes as they come; a lost connection is made again."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any  # JSON

from clusterctl_infra.outputs import InventoryNode
from clusterctl_infra.strict_json import NotAsExpected

from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.node_program import command
from clusterctl.jobs.node_words import MOST_ROW_BYTES, checked_rank, checked_row, checked_state, checked_time
from clusterctl.ssh.failure_hints import failure_line
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.kept_running import KeptCommand, keep_running

MOST_ITEMS = 5000
LOOK_S = 0.2
GIVE_UP_S = 30.0
"""How long to keep trying a node that cannot be reached, once another node has said how the job ended."""
UNHEARD_S = 120.0
"""How long to keep trying such a node while no node has said how the job ended."""


@dataclass(frozen=True, kw_only=True)
class OutputLine:
    """One line of one rank's output; `rank` is `-` for a line of the launcher itself."""

    slot: int
    at_s: float
    rank: str
    text: str


@dataclass(frozen=True, kw_only=True)
class NodeState:
    """What one node says of the job's state there."""

    slot: int
    words: Mapping[str, Any]
    is_over: bool


@dataclass(frozen=True, kw_only=True)
class Notice:
    """A sentence for the person that is not part of the job's output."""

    slot: int
    text: str


Item = OutputLine | NodeState | Notice


def output_line(slot: int, line: str) -> OutputLine:
    """Parses `SECONDS RANK TEXT`, the form in which nodes keep output. Raises ValueError, as for a torn line."""
    at_s, rank, text = line.split(" ", 2)
    return OutputLine(slot=slot, at_s=checked_time(at_s), rank=checked_rank(rank), text=text)


class JobFollowing:
    """Follows a job: threads read its nodes, and queue what arrives for the thread that shows it."""

    def __init__(
        self, nodes: JobNodes, members: tuple[InventoryNode, ...], *, job: str, attempt: int, is_followed: bool = True
    ) -> None:
        self._nodes = nodes
        self._members = members
        self._job, self._attempt, self._is_followed = job, attempt, is_followed
        self._arrived: queue.Queue[Item] = queue.Queue(MOST_ITEMS)
        self._rest = {node.slot: b"" for node in members}
        self._places = {node.slot: (1, 0) for node in members}
        self._over: dict[int, Mapping[str, Any]] = {}
        self._without: set[int] = set()
        """Slots that will not say how the job ended: the node has no such job (it was replaced), or odd answers."""
        self._lost_s: dict[int, float] = {}

    def items(self) -> Iterator[Item]:
        """Yields what the nodes send until the job has ended on all of them, or on all that can be reached.

        With `is_followed` False it ends when each node has sent what it has now. The threads that read the nodes end
        with the process.
        """
        kept = KeptCommand(command=self._command, on_begin=self._begin, on_output=self._hear, on_lost=self._lost_on)
        keep_running(kept, self._nodes.inventory, self._members, keys=self._nodes.keys, deadlines=self._nodes.deadlines)
        yield from self.next_items()

    def next_items(self) -> Iterator[Item]:
        """Goes on where the generator of `items`, which was interrupted, stopped."""
        while True:
            try:
                yield self._arrived.get(timeout=LOOK_S)
            except queue.Empty:
                if self._is_done(time.monotonic()):
                    return

    @property
    def last_states(self) -> dict[int, Mapping[str, Any]]:
        """Slot → the last state that the node there reported, for the nodes that have reported one."""
        return dict(self._over)

    def _is_done(self, now_s: float) -> bool:
        patience_s = GIVE_UP_S if self._over else UNHEARD_S
        settled = self._over.keys() | self._without
        return all(
            node.slot in settled or now_s - self._lost_s.get(node.slot, now_s) > patience_s for node in self._members
        )

    def _command(self, node: InventoryNode) -> str:
        segment, offset = self._places[node.slot]
        followed = "yes" if self._is_followed else "no"
        return command("follow", self._job, str(self._attempt), str(segment), str(offset), followed)

    def _begin(self, node: InventoryNode) -> None:
        self._rest[node.slot] = b""

    def _hear(self, node: InventoryNode, chunk: bytes) -> None:
        *rows, rest = (self._rest[node.slot] + chunk).split(b"\n")
        # Longer than any row: "-" stands for it, so that neither it nor what still comes of it is read as a row.
        self._rest[node.slot] = rest if len(rest) <= MOST_ROW_BYTES else b"-"
        for row in rows:
            try:
                words = checked_row(row)
            except NotAsExpected:
                continue  # a login's greeting
            if isinstance(words, list):
                self._take_line(node, words)
            elif isinstance(words, dict):
                self._take(node, words)

    def _take_line(self, node: InventoryNode, words: list[Any]) -> None:
        try:
            segment, offset, line = words
            place = (int(segment), int(offset))
            item = output_line(node.slot, str(line))
        except (TypeError, ValueError):
            return  # a line that was torn, as on a full disk: those behind it are whole
        self._lost_s.pop(node.slot, None)
        self._places[node.slot] = place
        self._arrived.put(item)

    def _take(self, node: InventoryNode, words: Mapping[str, Any]) -> None:
        if not words or "state" in words:
            self._lost_s.pop(node.slot, None)
        try:
            if "over" in words:
                over = checked_state(words["over"])
                self._over[node.slot] = over
                self._arrived.put(NodeState(slot=node.slot, words=over, is_over=True))
            elif "state" in words:
                self._arrived.put(NodeState(slot=node.slot, words=checked_state(words["state"]), is_over=False))
            elif "error" in words:
                self._give_up(node, str(words["error"]))
        except NotAsExpected as e:
            self._give_up(node, f"its answer cannot be read: {e}")

    def _give_up(self, node: InventoryNode, why: str) -> None:
        """Stops waiting for this node, which does not say how the job went, and tells the person why, once."""
        if node.slot not in self._without:
            self._without.add(node.slot)
            self._arrived.put(Notice(slot=node.slot, text=why))

    def _lost_on(self, node: InventoryNode, why: NodeFailure, tries: int) -> bool:
        """Whether to try the node again; the person is told of the first failure in a row."""
        if node.slot in self._over or node.slot in self._without:
            return False
        was_lost = node.slot in self._lost_s  # still so if a later connection brought no word of the job
        self._lost_s.setdefault(node.slot, time.monotonic())
        if tries <= 1 and not was_lost:
            text = failure_line(why, self._nodes.inventory, node)
            self._arrived.put(Notice(slot=node.slot, text=f"{text}; trying again"))
        return True
