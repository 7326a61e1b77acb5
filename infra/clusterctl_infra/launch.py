"""How a run's machines are launched: decided when the first are made, and kept for all that are made later. Pure.

A machine enters a placement group at launch or while it is stopped, and stays on spot capacity or off it for life.
"""

from __future__ import annotations

from collections.abc import Mapping

_FIXED = "fixed when the nodes are made: restore it, or end the nodes first; the next up then uses the new value"


def launch_facts(*, placement: str, capacity: str) -> dict[str, str]:
    """The settings that are fixed when machines are launched, by their names in cluster.yaml."""
    return {"placement": placement, "capacity": capacity}


def launch_changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """`capacity: spot → on-demand: fixed when the nodes are made: …` for each that would differ."""
    return tuple(
        f"{name}: {before[name]} → {after[name]}: {_FIXED}"
        for name in before
        if name in after and before[name] != after[name]
    )
