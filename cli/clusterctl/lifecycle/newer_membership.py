"""Nodes that have a newer membership than the state, because an older state was put back: all get a newer one still."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl_infra.config.flag_size import size_of_one_run
from clusterctl_infra.names import IDENTITY_TYPE, INVENTORY_TYPE, MEMBERSHIP_TYPE
from clusterctl_infra.outputs import Inventory, read_inventory

from clusterctl.engine.stack_config import config_of_one_run, read_config, with_values, write_config
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.display import Display
from clusterctl.lifecycle.readiness import NodeWatch
from clusterctl.status.node_report import READY
from clusterctl.text.node_set import fold_names

MOST_AHEAD = 1000
"""How many changes an older state may lack. A node that reports more is wrong or hostile, and must not decide."""
FLOOR = "generation-floor"
REFUSED_FOR_ITS_NUMBER = "generation: "
"""How a node's agent begins its refusal if it has a membership of that number or a higher one (node/apply.py)."""


@dataclass(frozen=True, kw_only=True)
class NewerMembership:
    """What nodes that refused this computer's membership have instead."""

    highest: int
    message: str
    """The sentence for a person about what was found."""


def newer_membership(watches: Sequence[NodeWatch], *, known: int) -> NewerMembership | None:
    """What the nodes that refused `known` for its number have instead; None where no node did. Pure.

    A number more than MOST_AHEAD above `known` is left out: that is the node's failure (`implausible`).
    """
    refused = [watch for watch in watches if _was_refused(watch)]
    plausible = {watch.name: _number(watch) for watch in refused if known <= _number(watch) <= known + MOST_AHEAD}
    if not plausible:
        return None
    highest = max(plausible.values())
    split = [name for name, number in plausible.items() if number == known]
    ahead = [name for name, number in plausible.items() if number > known]
    parts = []
    if ahead:
        older = f"the state knows {known}: an older state was put back"
        parts.append(f"{fold_names(ahead)}: membership {highest} is there, {older}")
    if split:
        parts.append(f"{fold_names(split)}: another membership {known} is there than the state's")
    return NewerMembership(highest=highest, message=f"{'; '.join(parts)}. All nodes get {highest + 1}")


def implausible(watch: NodeWatch, *, known: int) -> str | None:
    """Why a node's number is not believed; None where it is. Pure."""
    if not _was_refused(watch) or _number(watch) <= known + MOST_AHEAD:
        return None
    return f"it reports membership {_number(watch)}, which cannot be: the state knows {known}"


def go_above(change: Change, newer: NewerMembership, *, shown: str) -> Inventory:
    """Writes the floor in the stack's config, runs the engine on our own resources, and returns the new inventory.

    The change has come to its good end, so this is written down as a run of its own: the next run repairs what a kill
    leaves of it. Any run raises the number to the floor at least, and `up` tells the nodes. Raises EngineError.
    """
    config_file = change.engine.environment.config_file
    change.begin()
    write_config(config_file, with_values(read_config(config_file), {FLOOR: str(newer.highest + 1)}))
    state = change.engine.export() or StackState()
    run_on_own_resources(change, state, doing="raising the number of the membership", shown=shown)
    change.finish()
    return read_inventory(change.home.inventory_file(change.cluster))


def run_on_own_resources(change: Change, state: StackState, *, doing: str, shown: str) -> None:
    """Runs the engine once on our own resources alone, for the present number of nodes. Raises EngineError."""
    own = [part.urn for type in (IDENTITY_TYPE, INVENTORY_TYPE, MEMBERSHIP_TYPE) for part in state.of_type(type)]
    config_file, nodes = change.engine.environment.config_file, len(state.instances)
    text = with_values(read_config(config_file), size_of_one_run(nodes))
    with config_of_one_run(config_file, text, why="own") as temporary:
        result = change.run(
            "up",
            nodes=nodes,
            display=Display(change.output),
            options=[f"--target={urn}" for urn in own],
            config_file=temporary,
        )
    if result.interrupted:
        raise KeyboardInterrupt
    if not result.succeeded:
        raise change.failure(result, doing=doing, hint=f"clusterctl up {shown}")


def _was_refused(watch: NodeWatch) -> bool:
    is_ready = watch.gone is None and watch.report is not None and watch.report.phase == READY
    return is_ready and watch.undelivered is not None and watch.undelivered.startswith(REFUSED_FOR_ITS_NUMBER)


def _number(watch: NodeWatch) -> int:
    return 0 if watch.report is None else watch.report.generation
