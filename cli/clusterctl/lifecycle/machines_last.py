"""Many machines at once: everything else is made first, then they, by a run that writes the state at its end alone.

The engine writes the whole state before and after each resource, and a node is 80 KB of it: its user-data is a secret,
and it has up to 33 interfaces. The time and the memory of an `up` grow with the square of the nodes (docs/adr/0022).
"""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl.engine.state import INSTANCE_TYPE, LAUNCH_TEMPLATE_TYPE, StackState

FEWEST = 32
"""Fewer are made by one run: a second start of the engine takes seconds."""
LEFT_OUT = (INSTANCE_TYPE, LAUNCH_TEMPLATE_TYPE)
OPTIONS = (*(word for type in LEFT_OUT for word in ("--exclude", f"**{type}**")), "--exclude-dependents")
"""For the first run: neither the machines, nor what they are made of, nor what is made of them."""


def are_many(living: StackState, *, nodes: int, anew: Iterable[int] = ()) -> bool:
    """Whether going to `nodes` makes so many machines that they are made last.

    `living` holds the machines that live, `anew` the slots whose machines are replaced. Where machines go as well,
    it is never so: the first run would take the launch template of one that it leaves alone.
    """
    slots = {one.slot for one in living.instances}
    if any(slot >= nodes for slot in slots):
        return False
    return len(set(range(nodes)) - slots | set(anew)) >= FEWEST


def go_at_once(state: StackState) -> bool:
    """Whether so many machines end with this cluster that the state is written when all are gone.

    Killed, such a run leaves a state with machines that are gone, which every change looks for first.
    """
    return len(state.instances) >= FEWEST
