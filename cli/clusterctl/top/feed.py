"""One long-lived sampler on every node, its lines put on the board; a lost one is started again."""

from __future__ import annotations

import shlex
import threading
import time
from importlib.resources import files

from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.fan_out import NodeSinks, run_on_nodes
from clusterctl.ssh.login_keys import LoginKeys
from clusterctl.ssh.results import NodeResult
from clusterctl.top.board import Board
from clusterctl.top.sample import parse_sample

AGAIN_S = (1.0, 2.0, 5.0, 10.0)
"""Waits before the next try; the last one stays."""


def sampler_command(interval_s: float) -> str:
    """The line that runs the sampler on a node."""
    program = files("clusterctl.on_node").joinpath("sampler.py").read_text(encoding="utf-8")
    return shlex.join(["exec", "python3", "-c", program, f"{interval_s:g}"])


def start_feeds(
    inventory: Inventory,
    nodes: tuple[InventoryNode, ...],
    board: Board,
    *,
    keys: LoginKeys,
    interval_s: float,
    connect_timeout_s: float,
) -> None:
    """Starts a thread per node; they end with the process, and the samplers with their connections."""
    command = sampler_command(interval_s)
    for node in nodes:
        arguments = (inventory, node, board, command, keys, connect_timeout_s)
        threading.Thread(target=_follow, args=arguments, daemon=True, name=f"feed of {node.name}").start()


def _follow(
    inventory: Inventory,
    node: InventoryNode,
    board: Board,
    command: str,
    keys: LoginKeys,
    connect_timeout_s: float,
) -> None:
    tries = 0
    while True:
        lines = SampleLines(board, node.slot)
        result = _run(inventory, node, command, keys, connect_timeout_s, lines)
        board.lost(node.slot, reason(result, lines.complaint))
        tries = 0 if lines.count else tries + 1
        time.sleep(AGAIN_S[min(tries, len(AGAIN_S) - 1)])


def _run(
    inventory: Inventory,
    node: InventoryNode,
    command: str,
    keys: LoginKeys,
    connect_timeout_s: float,
    lines: SampleLines,
) -> NodeResult:
    sinks = NodeSinks(stdout=lambda _, chunk: lines.feed(chunk), stderr=lambda _, chunk: lines.complain(chunk))
    deadlines = Deadlines.within(connect_timeout_s)
    return run_on_nodes(inventory, (node,), command, keys=keys, deadlines=deadlines, sinks=sinks)[node.slot]


class SampleLines:
    """Chunks of a sampler's output as samples on the board."""

    def __init__(self, board: Board, slot: int) -> None:
        self._board = board
        self._slot = slot
        self._rest = b""
        self.count = 0
        self.complaint = ""

    def feed(self, chunk: bytes) -> None:
        """Whole lines become samples; only the newest of a chunk is kept."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines[-1:]:
            sample = parse_sample(line)
            if sample is not None:
                self.count += 1
                self._board.heard(self._slot, sample)

    def complain(self, chunk: bytes) -> None:
        """The last words on stderr, for the reason of an early end."""
        self.complaint = (self.complaint + chunk.decode(errors="replace"))[-500:]


def reason(result: NodeResult, complaint: str) -> str:
    """Why the sampler does not run any more."""
    if result.failure is not None:
        return result.failure.message
    said = complaint.strip().splitlines()
    return f"the sampler ended: {said[-1] if said else f'exit {result.exit_code}'}"
