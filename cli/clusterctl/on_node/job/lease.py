"""Which jobs hold this node, or some of its GPUs: a file for each, changed by one process at a time."""

from __future__ import annotations

import fcntl
import importlib
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Collection, Iterator, Optional, Tuple

from clusterctl.on_node.job.layout import Layout, read_json, write_json
from clusterctl.on_node.job.processes import end_all, is_alive, itself

PREPARED_WITHIN_S = 60.0
"""A job that has no keeper by then, counted from its last renewal, was given up by whoever wanted it."""

KILLED_WITHIN_S = 5.0
Indices = Optional[Tuple[int, ...]]
"""Indices of GPUs; None: the whole node, with whatever it has."""


def holders(layout: Layout) -> list[dict[str, Any]]:
    """Who holds the node or a part of it: `job`, `by`, `gpus` (None: all), and either `until_s` or `keeper`."""
    return [found for found in _all_written(layout) if _holds(found)]


def holder(layout: Layout, job: str) -> dict[str, Any] | None:
    """What this job holds here; None where it holds nothing."""
    found = _written(layout, job)
    return found if found is not None and _holds(found) else None


class PortsTaken(ValueError):
    """Another job here has one of the wanted ports."""


def take(
    layout: Layout, job: str, by: str, *, wanted: int | None, gpus: int, ports: Collection[int] = ()
) -> tuple[Indices, list[dict[str, Any]]]:
    """Takes the node, or `wanted` of its `gpus` GPUs, for a job.

    Returns the indices of the GPUs (None: all, or nothing was taken) and who is in the way: nobody if it was taken.
    `ports` are the job's own while it is here. Raises PortsTaken where another job that is here has one of them.
    """
    with _locked(layout):
        own = holder(layout, job)
        if own is not None:
            return _indices(own), [] if own["by"] == by else [own]
        _clear_stale(layout)
        others = holders(layout)
        indices = free_gpus(others, gpus)[: wanted or 0]
        if (others and wanted is None) or len(indices) < (wanted or 0):
            return None, others
        if any(port in ports for other in others for port in other.get("ports") or ()):
            raise PortsTaken("another job has one of its ports")
        taken = None if wanted is None else indices
        row = {"job": job, "by": by, "gpus": taken, "ports": sorted(ports), "until_s": _now_s() + PREPARED_WITHIN_S}
        write_json(_file(layout, job), row)
        return taken, []


def free_gpus(others: list[dict[str, Any]], gpus: int) -> tuple[int, ...]:
    """The indices that none of these jobs holds."""
    if any(_indices(other) is None for other in others):
        return ()
    held = {index for other in others for index in _indices(other) or ()}
    return tuple(index for index in range(gpus) if index not in held)


def renew(layout: Layout, job: str) -> bool:
    """Says that the preparation goes on; False where the lease is not this job's any more.

    One that has run out is still this job's as long as no other job has come to take it.
    """
    with _locked(layout):
        found = _without_keeper(layout, job)
        if found is None:
            return False
        write_json(_file(layout, job), {**found, "until_s": _now_s() + PREPARED_WITHIN_S})
        return True


def hold(layout: Layout, job: str) -> bool:
    """Has this process hold the lease for as long as it lives; False where the lease is not this job's any more."""
    with _locked(layout):
        found = _without_keeper(layout, job)
        if found is None:
            return False
        row = {
            "job": job,
            "by": "its keeper",
            "gpus": _indices(found),
            "ports": found.get("ports"),
            "keeper": itself(),
        }
        write_json(_file(layout, job), row)
        return True


def release(layout: Layout, job: str) -> None:
    """Gives back what the job holds here."""
    with _locked(layout):
        _file(layout, job).unlink(missing_ok=True)


def forget(layout: Layout, job: str) -> None:
    """Removes the files of a running job, and releases its lease."""
    try:
        _remove_running(layout, job)
    finally:
        release(layout, job)


def is_kept(layout: Layout, job: str) -> bool:
    """Whether a keeper of this job lives here."""
    found = holder(layout, job)
    return found is not None and "keeper" in found


@contextmanager
def _locked(layout: Layout) -> Iterator[None]:
    """Lets one process at a time read and change leases; it may have to end a job meanwhile."""
    layout.lease.mkdir(parents=True, exist_ok=True)
    lock = os.open(layout.lease.with_name(layout.lease.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _file(layout: Layout, job: str) -> Path:
    return layout.lease / (job + ".json")


def _all_written(layout: Layout) -> list[dict[str, Any]]:
    found = (_written(layout, path.stem) for path in sorted(layout.lease.glob("*.json")))
    return [each for each in found if each is not None]


def _written(layout: Layout, job: str) -> dict[str, Any] | None:
    """What the job's lease says, run out or not; None where there is none."""
    try:
        found = read_json(_file(layout, job))
    except (OSError, ValueError):
        return None
    return found if found.get("job") == job else None


def _indices(found: dict[str, Any]) -> Indices:
    return None if found.get("gpus") is None else tuple(int(index) for index in found["gpus"])


def _without_keeper(layout: Layout, job: str) -> dict[str, Any] | None:
    """The job's lease, if no keeper has it."""
    found = _written(layout, job)
    return found if found is not None and "keeper" not in found else None


def _remove_running(layout: Layout, job: str) -> None:
    """Removes the job's mark, key and secrets; in the secrets' folder the job may have made what it liked."""
    importlib.import_module("shutil").rmtree(layout.secrets(job), ignore_errors=True)
    for path in (layout.in_use(job), layout.key(job)):
        path.unlink(missing_ok=True)


def _clear_stale(layout: Layout) -> None:
    """Ends what jobs may have left whose keepers were killed, and drops their leases and those that ran out."""
    for found in _all_written(layout):
        if not _holds(found):
            try:
                end_all(str(found["job"]), None, KILLED_WITHIN_S)
                _remove_running(layout, str(found["job"]))
            finally:
                _file(layout, str(found["job"])).unlink(missing_ok=True)


def _holds(found: dict[str, Any]) -> bool:
    if "keeper" in found:
        return is_alive(found["keeper"])
    return bool(_now_s() < float(found["until_s"]))


def _now_s() -> float:
    """Seconds since boot, by a clock that nobody can set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
