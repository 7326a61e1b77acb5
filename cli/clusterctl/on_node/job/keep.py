"""The keeper of a job on one node: starts the supervisor, and clears up behind it however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable

from clusterctl.on_node.job import lease, task_names
from clusterctl.on_node.job.container import remove_job
from clusterctl.on_node.job.layout import Layout, mark_cancelled, read_json
from clusterctl.on_node.job.present_state import tell_lost
from clusterctl.on_node.job.processes import end_all, itself
from clusterctl.on_node.job.this_process import adopt_orphans

KILLED_WITHIN_S = 10.0


def keep(layout: Layout, job: str, program: Path) -> None:
    """Returns when nothing of the job is left on this node."""
    adopt_orphans()
    if not lease.hold(layout, job):
        return  # it came too late: another job has what it held
    layout.in_use(job).parent.mkdir(parents=True, exist_ok=True)
    layout.in_use(job).write_text("%d %d\n" % tuple(itself()))
    signal.signal(signal.SIGTERM, lambda number, frame: mark_cancelled(layout, job))

    def supervised() -> int:
        task_names.serve_task(layout, read_json(layout.spec(job)), program)
        return subprocess.Popen([sys.executable, "-IS", str(program), "supervise", job]).wait()

    def end() -> None:
        end_all(job, os.getpid(), KILLED_WITHIN_S)
        remove_job(layout, job)

    see_through(layout, job, supervised=supervised, end=end)


def see_through(layout: Layout, job: str, *, supervised: Callable[[], int], end: Callable[[], None]) -> None:
    """Gives the node back when the job is over: its supervisor has ended, and what it left is ended here.

    `supervised`: the status of the supervisor, once it has ended.
    """
    try:
        status = supervised()
        end()
        tell_lost(layout, job, "its supervisor there ended (%s)" % _how(status))
    finally:
        shutil.rmtree(layout.tmp(job), ignore_errors=True)
        lease.forget(layout, job)


def clear_up(layout: Layout, job: str) -> None:
    """Removes all signs that the job runs, after its service has ended, even if the keeper was killed."""
    tell_lost(layout, job, "its keeper there was killed")
    shutil.rmtree(layout.tmp(job), ignore_errors=True)
    lease.forget(layout, job)


def end_containers(layout: Layout, job: str) -> None:
    """Ends the job's processes on this node, and then removes what the engine still has of its containers."""
    end_all(job, None, KILLED_WITHIN_S)
    remove_job(layout, job)


def _how(status: int) -> str:
    return "signal %d" % -status if status < 0 else "exit %d" % status
