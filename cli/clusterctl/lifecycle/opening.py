"""How a change begins: the cluster is held, the run is written down, and how it ends is noted."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from clusterctl_infra.errors import NothingMatched
from clusterctl_infra.names import REHEARSAL_SUFFIX
from clusterctl_infra.outputs import Inventory

from clusterctl.engine.call import PulumiEngine
from clusterctl.engine.environment import engine_environment
from clusterctl.engine.run_file import note_engine, only_run, read_record
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import StackState
from clusterctl.engine.whereabouts import Whereabouts, whereabouts_of_cluster
from clusterctl.home import Home
from clusterctl.lifecycle.change import Change, ChangeVerb, account_of
from clusterctl.lifecycle.checks.known import WithEngine, WithFolder, WithHold
from clusterctl.lifecycle.checks.table import run_checks
from clusterctl.output import Output
from clusterctl.ssh.installed_config import refresh


@dataclass(frozen=True, kw_only=True)
class Held:
    """A cluster that is held for one change, as it was found."""

    change: Change
    state: StackState
    was_cut_off: bool
    """Whether an earlier run was interrupted."""


@contextlib.contextmanager
def open_change(
    verb: ChangeVerb,
    stack: Stack,
    *,
    name: str,
    region: str,
    rehearse: bool,
    home: Home,
    environ: Mapping[str, str],
    output: Output,
) -> Iterator[Change]:
    """Holds the cluster called `name` for one change. Raises EngineError, RehearsalError."""
    rehearsal = rehearse or stack.is_rehearsal_project
    cluster = name + REHEARSAL_SUFFIX if rehearsal else name
    with only_run(home, cluster, verb=verb, note=output.note):
        previous = read_record(home.run_file(cluster))
        environment = engine_environment(stack, rehearse=rehearse, home=home, environ=environ)
        starts = () if previous is None else previous.engines
        begun = partial(note_engine, home.run_file(cluster))
        change = Change(
            verb=verb,
            engine=PulumiEngine(stack=stack, environment=environment, starts=starts, begun=begun),
            home=home,
            output=output,
            cluster=cluster,
            region=region,
            environ=environ,
            previous=previous,
        )
        change.begin()
        try:
            yield change
        except BaseException:
            change.take_back()
            raise
        finally:
            _settle(change)


def _settle(change: Change) -> None:
    """Does what every change has to do at its end, however it ended."""
    change.note_what_became()
    refresh(change.home)
    (change.home.rehearsal_dir / "proof" / change.engine.environment.run_token).unlink(missing_ok=True)


def inspect(change: Change) -> tuple[StackState | None, bool]:
    """The state, and whether an earlier run was cut off; processes that it left are ended. Raises ClusterctlError."""
    run_checks(change.verb, WithEngine(engine=change.engine))
    state, was_cut_off = change.read_state()
    run_checks(change.verb, WithHold(change=change, state=state or StackState()))
    change.end_left_trial()
    if state is not None and account_of(state) is not None:
        change.note_machines()  # a run that was killed could not say what it left
    return state, was_cut_off


def open_change_at(
    verb: ChangeVerb, where: Whereabouts, *, home: Home, environ: Mapping[str, str], output: Output
) -> AbstractContextManager[Change]:
    """Holds the cluster of a stack for one change. Raises EngineError, RehearsalError."""
    run_checks(verb, WithFolder(stack=where.stack, home=home))
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
    verb: ChangeVerb, inventory: Inventory, *, home: Home, environ: Mapping[str, str], output: Output
) -> Iterator[Held]:
    """Holds a cluster that this computer knows. Raises NothingMatched, too, if this backend has no state of its stack.

    Since this computer knows the cluster, it was made: its state is most likely in another backend.
    """
    where = whereabouts_of_cluster(inventory)
    with open_change_at(verb, where, home=home, environ=environ, output=output) as change:
        found, was_cut_off = inspect(change)
        if found is None:
            backend = change.engine.backend_url()
            status = shlex.join(["clusterctl", "status", "--cluster", inventory.cluster])
            raise NothingMatched(
                f"the Pulumi backend {backend} does not hold {inventory.cluster}'s state. If it is elsewhere, "
                "`pulumi login` there",
                hint=status,
            )
        yield Held(change=change, state=found, was_cut_off=was_cut_off)
