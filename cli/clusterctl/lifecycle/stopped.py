"""The sentences for a person who has stopped a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from clusterctl_infra.errors import CloudError

from clusterctl.engine.boundary import RunResult
from clusterctl.engine.repair import unknown_machines
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.data import data_in
from clusterctl.text.quantities import count


def stopped_text(change: Change, result: RunResult, *, shown: str) -> str:
    """What a stopped run left, by the state; also by AWS if the engine was killed, as it then wrote nothing more."""
    state = change.engine.export() or StackState()
    if result.killed_by is None:
        return what_exists(state, shown=shown)
    try:
        unknown = len(unknown_machines(lambda: change.clients, state))
    except CloudError:
        return what_exists(state, shown=shown, unknown=None)
    return what_exists(state, shown=shown, unknown=unknown)


@contextlib.contextmanager
def noting_what_exists(change: Change, *, shown: str) -> Iterator[None]:
    """While entered, a person who presses Ctrl-C is told what exists: no engine runs that would handle it."""
    try:
        yield
    except KeyboardInterrupt:
        change.output.note(what_exists(change.engine.export() or StackState(), shown=shown))
        raise


def what_exists(state: StackState, *, shown: str, unknown: int | None = 0) -> str:
    """What a stopped run left, and what to type; `unknown`: number of machines in no state, None: AWS did not say."""
    if state.is_empty:
        return f"stopped; nothing exists.\n  next: clusterctl up {shown}"
    return (
        f"stopped; {what_is_there(state, unknown=unknown)}.\n"
        f"  next: clusterctl up {shown}    goes on\n        clusterctl down {shown}  ends it"
    )


def what_is_there(state: StackState, *, unknown: int | None = 0) -> str:
    """`41 resources are there, no node runs, 33 reserved places are empty and bill`; `unknown` as above."""
    resources = len([resource for resource in state.resources if resource.is_custom])
    nodes = len(state.machines)
    there = f"{count(resources, 'resource')} {'is' if resources == 1 else 'are'} there"
    none = "no node runs" if unknown == 0 else "its state has no node"
    bills = f"{count(nodes, 'node')} {_run_and_bill(nodes)}" if nodes else none
    if unknown is None:
        bills += "; AWS did not say whether more run and bill"
    elif unknown:
        ends = "ends it" if unknown == 1 else "ends them"
        bills += f"; {count(unknown, 'machine')} beside it {_run_and_bill(unknown)}, and the next command {ends}"
    if (empty := state.empty_places - (unknown or 0)) > 0:
        bills += f", {empty_places_bill(empty)}"
    data = ", ".join(file_system.mount for file_system in data_in(state))
    if data:
        bills += f", {data} bills"
    return f"{there}, {bills}"


def empty_places_bill(empty: int) -> str:
    """`33 reserved places are empty and bill`."""
    return f"{count(empty, 'reserved place')} {'is empty and bills' if empty == 1 else 'are empty and bill'}"


def _run_and_bill(number: int) -> str:
    return "runs and bills" if number == 1 else "run and bill"
