"""The runs of the engine that one `up` takes: one, or two where machines take the places of others or are many.

If many machines are made at once, a first run makes everything else, and a second one the machines; that one writes the
state only at its end. Otherwise the engine writes the whole state before and after each resource, and a node is 80 KB
of it: its user-data is a secret, and it has up to 33 interfaces. The time and the memory of an `up` would grow with the
square of the nodes (docs/adr/0022).

If the cluster gets smaller while one of the nodes that stay has to be made, the reservation has places for both in the
first run, and the second gives the surplus back. In one run the engine would make the reservation smaller first, then
make what is missing, and end the surplus last: machines that are still to go would sit in the places of those that are
to come (ReservationCapacityExceeded).

AWS may not count places that it has reserved as free yet, and refuse machines that want one for a while: then the run
is repeated. This was seen seconds after a reservation was made (scylladb/scylla-cluster-tests, issue 8839; 2026-11-22);
EC2 promises that what was changed is seen, but not when ("Eventual consistency in the Amazon EC2 API").
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any  # options of a run

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.engine.boundary import RunResult
from clusterctl.engine.events import Event
from clusterctl.engine.progress import summary
from clusterctl.engine.stack_config import config_of_one_run, read_config, with_values, write_config
from clusterctl.engine.state import INSTANCE_TYPE, LAUNCH_TEMPLATE_TYPE, RESERVATION_TYPE, StackState
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.display import Display
from clusterctl.system.disk_space import cannot_write


@dataclass(frozen=True, kw_only=True)
class Runs:
    """How the engine runs: once, or twice if `places` or `makes_machines_last` is set."""

    places: int | None = None
    """How many places the reservation has in the first run, before a second one makes it as the config says."""
    makes_machines_last: bool = False
    failed: tuple[str, ...] = ()
    """Ids of instances that are replaced though nothing of theirs has changed: their nodes failed."""


@dataclass(frozen=True, kw_only=True)
class UpRunsResult:
    """How the engine's runs ended."""

    result: RunResult
    """The result of the last run."""
    has_made: bool = False
    """Whether a run before the last came to its end: what it made is there, and bills."""


def runs_for(living: StackState, wanted: ClusterPlan, *, anew: Collection[int], failed: Iterable[str] = ()) -> Runs:
    """The runs that lead to the plan `wanted`. Pure.

    `living` holds the machines that live, `anew` the slots whose machines are replaced; `failed`: the instances among
    them whose nodes failed.
    """
    nodes = len(wanted.slots)
    return Runs(
        places=places_meanwhile(living, nodes=nodes, instance_type=wanted.instance_type, anew=anew),
        makes_machines_last=are_many(living, nodes=nodes, anew=anew),
        failed=tuple(failed),
    )


def run_up(
    change: Change,
    config_text: str,
    *,
    display: Display,
    on_event: Callable[[Event], None],
    nodes: int,
    runs: Runs,
    sleep: Callable[[float], None] = time.sleep,
) -> UpRunsResult:
    """Runs the engine's `up` with this config, which is kept; returns how its runs ended.

    Raises EngineError, RehearsalError when the engine did not start; then the config is as it was. A second run that
    does not start counts as failed, because the first has made something.
    """
    config_file = change.engine.environment.config_file
    before = read_config(config_file)

    def run(*, options: Sequence[str] = (), **others: Any) -> RunResult:
        def once() -> RunResult:
            forced = () if options == OPTIONS else replace_options(change, runs.failed)  # OPTIONS make no machine
            return change.run("up", nodes=nodes, on_event=on_event, options=[*options, *forced], **others)

        return run_until_places_are_free(once, change, sleep=sleep)

    try:
        write_config(config_file, config_text)
        if runs.places is not None:
            text = with_values(config_text, {"reserved": str(runs.places)})
            with config_of_one_run(config_file, text, why="reserved") as temporary:
                first = run(display=display, config_file=temporary)
            then, last = "places of removed machines are given back", partial(run, display=Display(change.output))
        elif runs.makes_machines_last:
            first = run(display=display, options=OPTIONS)
            then, last = "the machines", partial(run, display=display, writes_state_once=True)
        else:
            return UpRunsResult(result=run(display=display))
    except (ClusterctlError, OSError):
        with contextlib.suppress(OSError):
            write_config(config_file, before)
        raise
    if not first.succeeded:
        return UpRunsResult(result=first)
    done = f" {summary(first.changes)}; now {then}"
    return UpRunsResult(result=_started(last, change, done=done, log=first.log), has_made=True)


def replace_options(change: Change, failed: Collection[str]) -> list[str]:
    """`--replace=URN` for each of these instances that the state still has: none is replaced twice.

    Raises EngineError.
    """
    state = (change.engine.export() if failed else None) or StackState()
    return [f"--replace={instance.urn}" for instance in state.instances if instance.instance_id in failed]


def _started(run: Callable[[], RunResult], change: Change, *, done: str, log: Path) -> RunResult:
    """Shows the line `done` about the first run, and starts the second; one that does not start has failed."""
    try:
        change.output.note(done)
        return run()
    except KeyboardInterrupt:  # between the two runs no engine is there to handle it
        return RunResult(succeeded=False, interrupted=True, changes={}, refusals=(), log=log, stderr="")
    except ClusterctlError as e:
        refused = e
    except OSError as e:
        full = cannot_write(e, environ=change.environ)
        if full is None:
            raise
        refused = full
    return RunResult(succeeded=False, interrupted=False, changes={}, refusals=(), log=log, stderr=refused.message)


CODE = "ReservationCapacityExceeded"
PAUSES_S = (15.0, 30.0, 60.0)
"""One pause before each further run. The provider tries no machine again after CODE, and a failed `up` is undone."""


def run_until_places_are_free(
    run: Callable[[], RunResult], change: Change, *, sleep: Callable[[float], None]
) -> RunResult:
    """The result of a run of the engine; one that failed only for want of a free place is repeated, after PAUSES_S.

    Each repetition makes what is still missing. A rehearsal has one run.
    """
    result = run()
    for pause_s in () if change.is_rehearsal else PAUSES_S:
        if not _is_refused_for_places(result):
            break
        change.output.note(
            f" AWS does not count all reserved places as free yet ({CODE}): trying again in {pause_s:.0f} s"
        )
        try:
            sleep(pause_s)
        except KeyboardInterrupt:  # no engine is there to handle it
            return RunResult(
                succeeded=False, interrupted=True, changes=result.changes, refusals=(), log=result.log, stderr=""
            )
        try:
            result = run()
        except (ClusterctlError, OSError):  # it did not start: what the one before made is undone
            break
    return result


def _is_refused_for_places(result: RunResult) -> bool:
    codes = {refusal.code for refusal in result.refusals if refusal.code is not None}
    return not result.interrupted and result.killed_by is None and codes == {CODE}


FEWEST = 32
"""From this number on, machines have a run of their own: for fewer it does not pay, as its start takes seconds."""
LEFT_OUT = (INSTANCE_TYPE, LAUNCH_TEMPLATE_TYPE)
OPTIONS = (*(word for type in LEFT_OUT for word in ("--exclude", f"**{type}**")), "--exclude-dependents")
"""Options of the first run: it makes neither machines, nor what they are made from, nor what depends on them."""


def are_many(living: StackState, *, nodes: int, anew: Iterable[int] = ()) -> bool:
    """Whether going to `nodes` makes so many machines that they are made last.

    `living` holds the machines that live, `anew` the slots whose machines are replaced. Never if machines go as well:
    the first run, which leaves machines alone, would end the launch template of one that is to go.
    """
    slots = {instance.slot for instance in living.instances}
    if any(slot >= nodes for slot in slots):
        return False
    return len(set(range(nodes)) - slots | set(anew)) >= FEWEST


def go_at_once(state: StackState) -> bool:
    """Whether so many machines end with this cluster that the state is written when all are gone.

    Killed, such a run leaves a state with machines that are gone, which every change looks for first.
    """
    return len(state.instances) >= FEWEST


def places_meanwhile(state: StackState, *, nodes: int, instance_type: str, anew: Iterable[int] = ()) -> int | None:
    """How many places the reservation needs while the engine goes to `nodes`; None where no more than in the end.

    `state` holds the machines that live, `anew` the slots whose machines are replaced. For another instance type there
    will be another reservation, which none of the present machines is in. There may be two already: an `up` with
    another type that failed leaves the old one, which the engine's next run ends, beside the new one.
    """
    held = {
        reservation.inputs.get("instanceType")
        for reservation in state.of_type(RESERVATION_TYPE)
        if not reservation.is_replaced
    }
    if instance_type not in held:
        return None
    living = {instance.slot for instance in state.instances}
    surplus = {
        instance.slot
        for instance in state.instances
        if instance.slot >= nodes and instance.instance_type in (None, instance_type)
    }
    comes = set(range(nodes)) - living | set(anew)
    return nodes + len(surplus) if surplus and comes else None
