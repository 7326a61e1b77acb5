"""Which job holds this node: a folder that exists or not, with the holder's name in it from its first moment."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

from clusterctl.on_node.job.layout import Layout, read_json, write_json
from clusterctl.on_node.job.processes import end_all, is_alive, itself

PREPARED_WITHIN_S = 60.0
"""A job that has no supervisor by then, counted from its last sign, was given up by who wanted it."""

KILLED_WITHIN_S = 5.0


def holder(layout: Layout) -> dict[str, Any] | None:
    """`job`, `by`, and either `until_s` or `keeper`; None while nobody holds the node."""
    found = _written(layout)
    return found if found is not None and _holds(found) else None


def take(layout: Layout, job: str, by: str) -> dict[str, Any] | None:
    """Takes the lease: None, or who has it."""
    with _locked(layout):
        return _take(layout, job, by)


def renew(layout: Layout, job: str) -> bool:
    """The preparation goes on; False where the lease is not this job's any more.

    One that has run out is still this job's as long as no other job has taken the node.
    """
    with _locked(layout):
        found = _without_keeper(layout, job)
        if found is None:
            return False
        write_json(layout.lease / "holder.json", {**found, "until_s": _now_s() + PREPARED_WITHIN_S})
        return True


def hold(layout: Layout, job: str) -> bool:
    """From now on this process holds it, for as long as it lives; False where the lease is not this job's any more."""
    with _locked(layout):
        if _without_keeper(layout, job) is None:
            return False
        write_json(layout.lease / "holder.json", {"job": job, "by": "its supervisor", "keeper": itself()})
        return True


def release(layout: Layout, job: str) -> None:
    """Gives the node back; nothing where another job has it."""
    with _locked(layout):
        found = _written(layout)
        if found is not None and found.get("job") == job:
            _put_away(layout.lease)


def forget(layout: Layout, job: str) -> None:
    """Removes what is only for a job that runs, and gives the node back."""
    try:
        _remove_running(layout, job)
    finally:
        release(layout, job)


def is_kept(layout: Layout, job: str) -> bool:
    """Whether a supervisor of this job lives here."""
    found = holder(layout)
    return found is not None and found["job"] == job and "keeper" in found


@contextmanager
def _locked(layout: Layout) -> Iterator[None]:
    """One process at a time looks at the lease and changes it; none has it for longer than it takes to end a job."""
    layout.lease.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(layout.lease.with_name(layout.lease.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _take(layout: Layout, job: str, by: str) -> dict[str, Any] | None:
    fresh = layout.lease.with_name("%s.%d.new" % (layout.lease.name, os.getpid()))
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o755)
    write_json(fresh / "holder.json", {"job": job, "by": by, "until_s": _now_s() + PREPARED_WITHIN_S})
    try:
        for _ in range(3):
            try:
                # A folder with something in it is never replaced by rename(2): of two one fails.
                os.rename(fresh, layout.lease)
                return None
            except OSError:
                found = holder(layout)
                if found is not None:
                    return None if found["job"] == job and found["by"] == by else found
                _clear_stale(layout)
        return holder(layout) or {"job": "another one", "by": "somebody"}
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _written(layout: Layout) -> dict[str, Any] | None:
    """What the lease says, run out or not; None where there is none."""
    try:
        return read_json(layout.lease / "holder.json")
    except (OSError, ValueError):
        return None


def _without_keeper(layout: Layout, job: str) -> dict[str, Any] | None:
    """The lease, where it is this job's and no supervisor has it."""
    found = _written(layout)
    return found if found is not None and found.get("job") == job and "keeper" not in found else None


def _remove_running(layout: Layout, job: str) -> None:
    """Its mark, its key and its secrets; in the folder of these the job may have made what it liked."""
    shutil.rmtree(layout.secrets(job), ignore_errors=True)
    for path in (layout.in_use(job), layout.key(job)):
        path.unlink(missing_ok=True)


def _clear_stale(layout: Layout) -> None:
    """Ends what a job may have left whose keeper was killed, then gives the node back."""
    try:
        found = _written(layout)
        if found is not None and "job" in found:
            end_all(str(found["job"]), None, KILLED_WITHIN_S)
            _remove_running(layout, str(found["job"]))
    finally:
        _put_away(layout.lease)


def _holds(found: dict[str, Any]) -> bool:
    if "keeper" in found:
        return is_alive(found["keeper"])
    return bool(_now_s() < float(found["until_s"]))


def _put_away(folder: Path) -> None:
    """Away in one step: of two that find it stale one alone removes it."""
    away = folder.with_name("%s.%d.old" % (folder.name, os.getpid()))
    try:
        os.rename(folder, away)
    except OSError:
        return
    shutil.rmtree(away, ignore_errors=True)


def _now_s() -> float:
    """By a clock that nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
