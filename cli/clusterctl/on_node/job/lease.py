"""Which job holds this node: a folder that exists or not, with the holder's name in it from its first moment."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

from clusterctl.on_node.job.layout import Layout, read_json, write_json
from clusterctl.on_node.job.processes import end_all, is_alive, itself

PREPARED_WITHIN_S = 60.0
"""A job that has no supervisor by then, counted from its last sign, was given up by who wanted it."""

KILLED_WITHIN_S = 5.0


def holder(layout: Layout) -> dict[str, Any] | None:
    """`job`, `by`, and either `until_s` or `keeper`; None while nobody holds the node."""
    try:
        found = read_json(layout.lease / "holder.json")
    except (OSError, ValueError):
        return None
    return found if _holds(found) else None


def take(layout: Layout, job: str, by: str) -> dict[str, Any] | None:
    """Takes the lease: None, or who has it."""
    layout.lease.parent.mkdir(parents=True, exist_ok=True)
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


def renew(layout: Layout, job: str) -> bool:
    """The preparation goes on; False where the lease is not this job's any more."""
    found = holder(layout)
    if found is None or found["job"] != job or "keeper" in found:
        return False
    write_json(layout.lease / "holder.json", {**found, "until_s": _now_s() + PREPARED_WITHIN_S})
    return True


def hold(layout: Layout, job: str) -> None:
    """From now on this process holds it, for as long as it lives."""
    write_json(layout.lease / "holder.json", {"job": job, "by": "its supervisor", "keeper": itself()})


def release(layout: Layout, job: str) -> None:
    """Gives the node back; nothing where another job has it."""
    try:
        found = read_json(layout.lease / "holder.json")
    except (OSError, ValueError):
        return
    if found.get("job") == job:
        _put_away(layout.lease)


def forget(layout: Layout, job: str) -> None:
    """Removes what is only for a job that runs, and gives the node back."""
    secrets = layout.secrets(job)
    for path in (layout.in_use(job), layout.key(job), *secrets.glob("*")):
        try:
            path.unlink()
        except FileNotFoundError:
            pass  # there was none
    if secrets.is_dir():
        secrets.rmdir()
    release(layout, job)


def is_kept(layout: Layout, job: str) -> bool:
    """Whether a supervisor of this job lives here."""
    found = holder(layout)
    return found is not None and found["job"] == job and "keeper" in found


def _clear_stale(layout: Layout) -> None:
    """Ends what a job may have left whose keeper was killed, then gives the node back."""
    try:
        job = str(read_json(layout.lease / "holder.json")["job"])
    except (OSError, ValueError, LookupError):
        return _put_away(layout.lease)  # nobody knows whose it was
    end_all(job, None, KILLED_WITHIN_S)
    forget(layout, job)


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
