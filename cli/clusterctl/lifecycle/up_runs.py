"""The runs of the engine that one `up` takes: one, or two where machines make room for others or are many."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.changes.change import Change
from clusterctl.changes.display import Display
from clusterctl.engine.events import Event
from clusterctl.engine.progress import summary
from clusterctl.engine.run import RunResult
from clusterctl.engine.stack_config import config_of_one_run, read_config, with_values, write_config
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.machines_last import OPTIONS, are_many
from clusterctl.lifecycle.shrinking import places_meanwhile


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Why one run of the engine is not enough, if it is not."""

    places: int | None = None
    """As many in the reservation at first, then as many as the config says."""
    makes_machines_last: bool = False


def runs_for(living: StackState, wanted: ClusterPlan, *, anew: Collection[int]) -> Runs:
    """`living` holds the machines that live, `anew` the slots whose machines are replaced. Pure."""
    nodes = len(wanted.slots)
    return Runs(
        places=places_meanwhile(living, nodes=nodes, instance_type=wanted.instance_type, anew=anew),
        makes_machines_last=are_many(living, nodes=nodes, anew=anew),
    )


def run_up(
    change: Change,
    config_text: str,
    *,
    display: Display,
    on_event: Callable[[Event], None],
    nodes: int,
    runs: Runs,
) -> RunResult:
    """The engine's `up` with this config, which is kept.

    Raises EngineError, RehearsalError when the engine did not start; then the config is as it was.
    """
    config_file = change.engine.environment.config_file
    before = read_config(config_file)
    write_config(config_file, config_text)
    try:
        if runs.places is not None:
            text = with_values(config_text, {"reserved": str(runs.places)})
            with config_of_one_run(config_file, text, why="reserved") as temporary:
                result = change.run("up", nodes=nodes, display=display, on_event=on_event, config_file=temporary)
            if not result.succeeded:
                return result
            change.output.note(f" {summary(result.changes)}; now the places of those that went are given back")
            display = Display(change.output)
        elif runs.makes_machines_last:
            return _machines_last(change, nodes=nodes, display=display, on_event=on_event)
        return change.run("up", nodes=nodes, display=display, on_event=on_event)
    except ClusterctlError:
        write_config(config_file, before)
        raise


def _machines_last(change: Change, *, nodes: int, display: Display, on_event: Callable[[Event], None]) -> RunResult:
    first = change.run("up", nodes=nodes, display=display, on_event=on_event, options=OPTIONS)
    if not first.succeeded or first.interrupted:
        return replace(first, succeeded=False)
    change.output.note(f" {summary(first.changes)}; now the machines")
    return change.run("up", nodes=nodes, display=display, on_event=on_event, writes_state_once=True)
