"""The states of jobs on this node: what their supervisors wrote, or `lost` if nobody holds the node for a job."""

from __future__ import annotations

import contextlib
import time
from typing import Any, Dict

from clusterctl.on_node.job import judge, lease
from clusterctl.on_node.job.events import note_event
from clusterctl.on_node.job.layout import Layout, mark_cancelled, read_boot_id, read_json, read_state, write_state


def answer_list(layout: Layout) -> Dict[str, Any]:
    """The verb `list`: all jobs that this node knows."""
    found = []
    for path in sorted(layout.jobs.glob("*/spec.json")):
        try:
            job = path.parent.name
            found.append({"spec": read_json(path), "state": listed_state(layout, job)})
        except (OSError, ValueError, LookupError):
            continue  # it is being removed
    return {"jobs": found}


def answer_cancel(layout: Layout, job: str, then: str = "") -> Dict[str, Any]:
    """The verb `cancel`. `state`: the state in which the job is; `then`: `restart` if its workflow starts it again."""
    return {"state": cancel(layout, job, is_to_restart=then == "restart")}


def cancel(layout: Layout, job: str, *, is_to_restart: bool = False) -> Dict[str, Any]:
    """Cancels a job: if it still runs, its supervisor is told. Returns the state in which the job is.

    `is_to_restart`: its workflow will start the task again, by a job of another name. Raises OSError, ValueError.
    """
    if is_to_restart:
        with contextlib.suppress(OSError):  # a disk may be full; the job is cancelled all the same
            layout.restart(job).touch()
    else:
        layout.restart(job).unlink(missing_ok=True)
    state = present_state(layout, job)
    if state["state"] not in judge.FINAL:
        mark_cancelled(layout, job)
    return state


def listed_state(layout: Layout, job: str) -> Dict[str, Any]:
    """How the job goes on this node; `is_to_restart` where it has been cancelled for that."""
    return {**present_state(layout, job), **({"is_to_restart": True} if layout.restart(job).exists() else {})}


def present_state(layout: Layout, job: str) -> dict[str, Any]:
    """How the job goes on this node; `lost` if nobody holds the node for it. Raises OSError, ValueError."""
    found = read_state(layout, job)
    if found["state"] in judge.FINAL:
        return found
    if found["state"] == judge.PREPARING and lease.holder(layout, job) is not None:
        return found
    if lease.is_kept(layout, job) and found["boot_id"] == read_boot_id(layout):
        return found
    latest = read_state(layout, job)  # it may have ended between the two looks
    if latest["state"] in judge.FINAL:
        return latest
    if latest["state"] == judge.PREPARING:
        return _lost(latest, "the command that prepared the job ended before it was started")
    return _lost(
        latest, "the node was restarted" if latest["boot_id"] != read_boot_id(layout) else "its supervisor is gone"
    )


def tell_lost(layout: Layout, job: str, why: str) -> None:
    """Writes down that the job is lost, unless its end is written down already."""
    try:
        found = read_state(layout, job)
    except (OSError, ValueError):
        return
    if found["state"] not in judge.FINAL:
        lost = _lost(found, why)
        write_state(layout, job, lost)
        note_event(layout, job, judge.LOST, attempt=found["attempt"], why=lost["outcome"]["cause"])


def _lost(found: dict[str, Any], why: str) -> dict[str, Any]:
    cause = "Node %s was lost: %s" % (found["slot"], why)
    return {**found, "state": judge.LOST, "since_s": time.time(), "outcome": judge.outcome(judge.LOST, cause, ())}
