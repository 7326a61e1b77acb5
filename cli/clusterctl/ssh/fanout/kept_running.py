"""A command that runs on every node for as long as this process does, started again wherever it is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.fanout.sinks import NodeSinks
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.results import NodeResult

AGAIN_S = (1.0, 2.0, 5.0, 10.0)
"""Waits before the next tries; the last one is repeated."""
COMPLAINT_BYTES = 2000


@dataclass(frozen=True, kw_only=True)
class KeptCommand:
    """What runs, and the callbacks that hear of it; those of one node never run at the same time."""

    command: Callable[[InventoryNode], str]
    """Called for each start, so that a node can continue where it was."""
    on_begin: Callable[[InventoryNode], None]
    on_output: Callable[[InventoryNode, bytes], None]
    on_lost: Callable[[InventoryNode, NodeFailure, int], bool]
    """Gets why it does not run any more, and how many starts in a row brought no output; True: start it again."""


@dataclass
class _NodeRun:
    """One node's run."""

    has_output: bool = False
    complaint: bytes = b""
    tries: int = field(default=0)


def keep_running(
    kept: KeptCommand,
    inventory: Inventory,
    nodes: tuple[InventoryNode, ...],
    *,
    keys: LoginKeys,
    deadlines: Deadlines,
) -> None:
    """Starts the command on all nodes, in threads that end with the process.

    All nodes share one fan-out; a node that is lost goes on in its own thread, so that it holds up no other.
    """
    keeper = _Keeper(kept, inventory, keys, deadlines)
    threading.Thread(target=keeper.run_all, args=(nodes,), daemon=True, name="kept running").start()


class _Keeper:
    def __init__(self, kept: KeptCommand, inventory: Inventory, keys: LoginKeys, deadlines: Deadlines) -> None:
        self._kept = kept
        self._inventory = inventory
        self._keys = keys
        self._deadlines = deadlines

    def run_all(self, nodes: tuple[InventoryNode, ...]) -> None:
        """Starts the command on all nodes at once, since it is the same command for all at first."""
        by_slot = {node.slot: node for node in nodes}
        runs = {node.slot: _NodeRun() for node in nodes}

        def keep_alone(result: NodeResult) -> None:
            node = by_slot[result.slot]
            if not self._lost(node, runs[result.slot], result):
                return
            arguments = (node, runs[result.slot])
            threading.Thread(target=self._keep, args=arguments, daemon=True, name=f"kept on {node.name}").start()

        self._run(nodes, runs, keep_alone)

    def _keep(self, node: InventoryNode, run: _NodeRun) -> None:
        is_wanted = True

        def take(result: NodeResult) -> None:
            nonlocal is_wanted
            is_wanted = self._lost(node, run, result)

        while is_wanted:
            time.sleep(AGAIN_S[min(run.tries, len(AGAIN_S) - 1)])
            run.has_output, run.complaint = False, b""
            self._run((node,), {node.slot: run}, take)

    def _run(
        self,
        nodes: tuple[InventoryNode, ...],
        runs: dict[int, _NodeRun],
        on_result: Callable[[NodeResult], None],
    ) -> None:
        def hear(node: InventoryNode, chunk: bytes) -> None:
            runs[node.slot].has_output = True
            self._kept.on_output(node, chunk)

        def hear_complaint(node: InventoryNode, chunk: bytes) -> None:
            run = runs[node.slot]
            run.complaint = (run.complaint + chunk)[-COMPLAINT_BYTES:]

        for node in nodes:
            self._kept.on_begin(node)
        run_on_nodes(
            self._inventory,
            nodes,
            self._kept.command(nodes[0]),
            keys=self._keys,
            deadlines=self._deadlines,
            sinks=NodeSinks(stdout=hear, stderr=hear_complaint),
            on_result=on_result,
            fan_out=len(nodes),  # none of them ends, so none waits for another's place
        )

    def _lost(self, node: InventoryNode, run: _NodeRun, result: NodeResult) -> bool:
        run.tries = 0 if run.has_output else run.tries + 1
        return self._kept.on_lost(node, reason(result, run.complaint), run.tries)


def reason(result: NodeResult, complaint: bytes) -> NodeFailure:
    """Why the command does not run any more: the failure, else the command's last line."""
    if result.failure is not None:
        return result.failure
    lines = complaint.decode(errors="replace").strip().splitlines()
    return NodeFailure("ended", f"it ended: {lines[-1] if lines else f'exit {result.exit_code}'}", phase="command")
