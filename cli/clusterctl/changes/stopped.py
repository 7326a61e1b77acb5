"""What a person who stopped a run is told."""

from __future__ import annotations

from clusterctl.changes.data import data_in
from clusterctl.engine.state import StackState
from clusterctl.views.quantities import count


def what_exists(state: StackState, *, shown: str) -> str:
    """What a stopped run left, and what to type."""
    resources = len([resource for resource in state.resources if resource.is_custom])
    if not resources:
        return f"stopped; nothing exists.\n  next: clusterctl up {shown}"
    nodes = len(state.instances)
    there = f"{count(resources, 'resource')} {'is' if resources == 1 else 'are'} there"
    bills = f"{count(nodes, 'node')} {'runs and bills' if nodes == 1 else 'run and bill'}" if nodes else "no node runs"
    data = ", ".join(one.mount for one in data_in(state))
    if data:
        bills += f", {data} bills"
    return (
        f"stopped; {there}, {bills}.\n"
        f"  next: clusterctl up {shown}    goes on\n        clusterctl down {shown}  ends it"
    )
