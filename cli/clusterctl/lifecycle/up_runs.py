"""The runs of the engine that one `up` takes: one, or two where machines make room for others or are many."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any  # options of a run

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cannot_write import cannot_write
from clusterctl.changes.change import Change
from clusterctl.changes.display import Display
from clusterctl.engine.events import Event
from clusterctl.engine.progress import summary
from clusterctl.engine.run import RunResult
from clusterctl.engine.stack_config import config_of_one_run, read_config, with_values, write_config
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.late_places import run_until_places_are_free
from clusterctl.lifecycle.machines_last import OPTIONS, are_many
from clusterctl.lifecycle.shrinking import places_meanwhile


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Why one run of the engine is not enough, if it is not."""

    places: int | None = None
    """As many in the reservation at first, then as many as the config says."""
    makes_machines_last: bool = False


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How they ended."""

    result: RunResult
    """Of the last one."""
    has_made: bool = False
    """One before it came to its end: what that made is there, and bills."""


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
    sleep: Callable[[float], None] = time.sleep,
) -> Ran:
    """The engine's `up` with this config, which is kept.

    Raises EngineError, RehearsalError when the engine did not start; then the config is as it was. A second run that
    does not start is one that failed: the first has made something.
    """
    config_file = change.engine.environment.config_file
    before = read_config(config_file)

    def run(**options: Any) -> RunResult:
        once = partial(change.run, "up", nodes=nodes, on_event=on_event, **options)
        return run_until_places_are_free(once, change, sleep=sleep)

    try:
        write_config(config_file, config_text)
        if runs.places is not None:
            text = with_values(config_text, {"reserved": str(runs.places)})
            with config_of_one_run(config_file, text, why="reserved") as temporary:
                first = run(display=display, config_file=temporary)
            then, last = "the places of those that went are given back", partial(run, display=Display(change.output))
        elif runs.makes_machines_last:
            first = run(display=display, options=OPTIONS)
            then, last = "the machines", partial(run, display=display, writes_state_once=True)
        else:
            return Ran(result=run(display=display))
    except (ClusterctlError, OSError):
        with contextlib.suppress(OSError):
            write_config(config_file, before)
        raise
    if not first.succeeded:
        return Ran(result=first)
    done = f" {summary(first.changes)}; now {then}"
    return Ran(result=_started(last, change, done=done, log=first.log), has_made=True)


def _started(run: Callable[[], RunResult], change: Change, *, done: str, log: Path) -> RunResult:
    """How the second run ended, after the words for the first one; one that did not start has failed, and says why."""
    try:
        change.output.note(done)
        return run()
    except KeyboardInterrupt:  # between the two runs there is no engine to take it
        return RunResult(succeeded=False, interrupted=True, changes={}, refusals=(), log=log, said="")
    except ClusterctlError as e:
        refused = e
    except OSError as e:
        full = cannot_write(e, environ=change.environ)
        if full is None:
            raise
        refused = full
    return RunResult(succeeded=False, interrupted=False, changes={}, refusals=(), log=log, said=refused.message)
