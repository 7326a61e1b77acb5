"""The live view without a terminal: one frame, once every node has reported enough or the time is up."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from clusterctl_infra.errors import SomeNodesFailed
from clusterctl_infra.ledger import Ledger
from clusterctl_infra.outputs import Inventory

from clusterctl.output import Output
from clusterctl.ssh.failures import node_failure_json
from clusterctl.top.board import Board, NodeState, silence
from clusterctl.top.frame import header, layout_for, node_line, sorted_states, text_of, title

LOOK_S = 0.1


def print_frame(
    inventory: Inventory, board: Board, ledger: Ledger | None, output: Output, *, within_s: float, as_json: bool
) -> int:
    """Prints one frame. Returns the exit code: 0, or 4 when a node was not heard."""
    states = _awaited(board, inventory.gpus_per_node > 0, time.monotonic() + within_s)
    now_s = time.monotonic()
    if as_json:
        output.json(frame_json(inventory, states, now_s))
    else:
        output.data(title(inventory, states, ledger, now=datetime.now(UTC), now_s=now_s))
        layout = layout_for(inventory.gpus_per_node, names=[state.name for state in states.values()])
        output.data("  " + header(layout))
        for state in sorted_states(states, "n"):
            output.data("  " + text_of(node_line(state, inventory.gpus_per_node, layout, now_s)))
    is_all_heard = all(silence(state, now_s) is None for state in states.values())
    return 0 if is_all_heard else SomeNodesFailed.exit_code


def frame_json(inventory: Inventory, states: Mapping[int, NodeState], now_s: float) -> dict[str, object]:
    """What `clusterctl top --json` prints; a node that was not heard says why."""
    ranks = {node.slot: node.rank for node in inventory.nodes}
    return {
        "cluster": inventory.cluster,
        "rehearsal": inventory.rehearsal,
        "nodes": [
            {
                **node_failure_json(state.name, slot=state.slot, rank=ranks[state.slot], failure=silence(state, now_s)),
                "sample": None if state.sample is None else dataclasses.asdict(state.sample),
                "rates": None if state.rates is None else dataclasses.asdict(state.rates),
            }
            for state in sorted_states(states, "n")
        ],
    }


def _awaited(board: Board, has_gpus: bool, ends_at: float) -> Mapping[int, NodeState]:
    while True:
        states = board.states()
        if all(_is_enough(state, has_gpus) for state in states.values()) or time.monotonic() > ends_at:
            return states
        time.sleep(LOOK_S)


def _is_enough(state: NodeState, has_gpus: bool) -> bool:
    """Two samples for the rates, and the GPUs, whose first answer takes a moment."""
    if state.failure is not None:
        return True
    sample = state.sample
    return state.rates is not None and sample is not None and bool(sample.gpus or sample.error or not has_gpus)
