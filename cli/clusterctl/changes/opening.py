"""A change of a cluster whose stack is known, as `down`, `extend` and `replace` begin it."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from clusterctl_infra.errors import NothingMatched
from clusterctl_infra.outputs import Inventory

from clusterctl.changes.change import Change, open_change
from clusterctl.engine.stack import refuse_without_program
from clusterctl.engine.state import StackState
from clusterctl.engine.whereabouts import Whereabouts, whereabouts_of_cluster
from clusterctl.home import Home
from clusterctl.output import Output


@dataclass(frozen=True, kw_only=True)
class Held:
    """A cluster that is held for one change, as it was found."""

    change: Change
    state: StackState
    was_cut_off: bool
    """A run before this one was."""


def open_change_at(
    verb: str, where: Whereabouts, *, home: Home, environ: Mapping[str, str], output: Output
) -> AbstractContextManager[Change]:
    """Holds the cluster of a stack for one change. Raises EngineError, RehearsalError."""
    return open_change(
        verb,
        where.stack,
        name=where.name,
        region=where.region,
        rehearse=where.rehearse,
        home=home,
        environ=environ,
        output=output,
    )


@contextlib.contextmanager
def open_change_of(
    verb: str, inventory: Inventory, *, home: Home, environ: Mapping[str, str], output: Output
) -> Iterator[Held]:
    """Holds a cluster that this computer knows. Raises NothingMatched too, where its stack has no state.

    As this computer knows it, it was made: its state is most likely in another backend.
    """
    where = whereabouts_of_cluster(inventory)
    refuse_without_program(where.stack)
    with open_change_at(verb, where, home=home, environ=environ, output=output) as change:
        found, was_cut_off = change.inspect()
        if found is None:
            backend = change.engine.backend_url()
            status = shlex.join(["clusterctl", "status", "--cluster", inventory.cluster])
            raise NothingMatched(
                f"{inventory.cluster}: the Pulumi backend {backend} has no state of it; has another one? Then first: "
                "pulumi login",
                hint=status,
            )
        yield Held(change=change, state=found, was_cut_off=was_cut_off)
