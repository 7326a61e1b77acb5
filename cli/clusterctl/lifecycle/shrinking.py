"""Fewer nodes while one of those that stay has to be made: the reservation has room for both, until the others go.

The engine ends what is too much after it has made what is missing, and makes the reservation smaller before either:
the machines that are still to go would sit in the places of those that are to come (ReservationCapacityExceeded).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from clusterctl_infra.errors import ClusterctlError

from clusterctl.changes.change import Change
from clusterctl.changes.display import Display
from clusterctl.engine.events import Event
from clusterctl.engine.progress import summary
from clusterctl.engine.run import RunResult
from clusterctl.engine.stack_config import config_of_one_run, read_config, with_values, write_config
from clusterctl.engine.state import RESERVATION_TYPE, StackState


def places_meanwhile(state: StackState, *, nodes: int, instance_type: str, anew: Iterable[int] = ()) -> int | None:
    """How many places the reservation needs while the engine goes to `nodes`; None where no more than in the end.

    `state` holds the machines that live, `anew` the slots whose machines are replaced. For another instance type there
    will be another reservation, which none of the present machines is in.
    """
    reservation = state.find(RESERVATION_TYPE)
    if reservation is None or reservation.inputs.get("instanceType") != instance_type:
        return None
    living = {one.slot for one in state.instances}
    surplus = {slot for slot in living if slot >= nodes}
    comes = set(range(nodes)) - living | set(anew)
    return nodes + len(surplus) if surplus and comes else None


def run_up(
    change: Change,
    config_text: str,
    *,
    display: Display,
    on_event: Callable[[Event], None],
    nodes: int,
    places: int | None,
) -> RunResult:
    """The engine's `up` with this config, which is kept; with `places`, first with as many, then with what it says.

    Raises EngineError, RehearsalError when the engine did not start; then the config is as it was.
    """
    config_file = change.engine.environment.config_file
    before = read_config(config_file)
    write_config(config_file, config_text)
    try:
        if places is not None:
            text = with_values(config_text, {"reserved": str(places)})
            with config_of_one_run(config_file, text, why="reserved") as temporary:
                result = change.run("up", nodes=nodes, display=display, on_event=on_event, config_file=temporary)
            if not result.succeeded:
                return result
            change.output.note(f" {summary(result.changes)}; now the places of those that went are given back")
            display = Display(change.output)
        return change.run("up", nodes=nodes, display=display, on_event=on_event)
    except ClusterctlError:
        write_config(config_file, before)
        raise
