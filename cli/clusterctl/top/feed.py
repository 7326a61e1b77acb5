"""Runs one long-lived sampler on every node, and puts its lines on the board; a lost one is started again."""

from __future__ import annotations

import shlex
from importlib.resources import files

from clusterctl_infra.outputs import Inventory, InventoryNode
from clusterctl_infra.strict_json import NotAsExpected

from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failure_hints import failure_line
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.kept_running import KeptCommand, keep_running
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.top.board import Board
from clusterctl.top.sample import MOST_LINE_BYTES, parse_sample


def sampler_command(interval_s: float) -> str:
    """The line that runs the sampler on a node."""
    program = files("clusterctl.on_node").joinpath("sampler.py").read_text(encoding="utf-8")
    return "exec " + shlex.join(["python3", "-I", "-c", program, f"{interval_s:g}"])


def start_feeds(
    inventory: Inventory,
    nodes: tuple[InventoryNode, ...],
    board: Board,
    *,
    keys: LoginKeys,
    interval_s: float,
    connect_timeout_s: float,
) -> None:
    """Starts the samplers; they end with this process."""
    command = sampler_command(interval_s)
    lines = {node.slot: SampleLines(board, node.slot) for node in nodes}

    def lost(node: InventoryNode, why: NodeFailure, tries: int) -> bool:
        message = failure_line(why, inventory, node)
        board.lost(node.slot, NodeFailure(why.kind, message, phase=why.phase))
        return True

    kept = KeptCommand(
        command=lambda node: command,
        on_begin=lambda node: lines[node.slot].begin(),
        on_output=lambda node, chunk: lines[node.slot].feed(chunk),
        on_lost=lost,
    )
    keep_running(kept, inventory, nodes, keys=keys, deadlines=Deadlines.within(connect_timeout_s))


class SampleLines:
    """Puts the samples in a sampler's output, which comes in chunks, on the board."""

    def __init__(self, board: Board, slot: int) -> None:
        self._board = board
        self._slot = slot
        self._rest = b""

    def begin(self) -> None:
        """Notes a new connection: an incomplete line of the old one is dropped."""
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Takes in a chunk of output: the newest whole line in it becomes a sample, the others are left out."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._rest = self._rest[:MOST_LINE_BYTES]  # a line without an end is not kept: it cannot be read anyway
        for line in lines[-1:]:
            try:
                sample = parse_sample(line)
            except NotAsExpected as e:
                self._board.lost(self._slot, NodeFailure("protocol", f"its sample cannot be read: {e}"))
                continue
            if sample is not None:
                self._board.receive(self._slot, sample)
