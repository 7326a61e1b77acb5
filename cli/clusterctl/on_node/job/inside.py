"""A command inside a job that runs: in its environment and folder, as its user, and with no more rights than it has."""

from __future__ import annotations

import ctypes
import os
import pwd
from pathlib import Path
from typing import Any

from clusterctl.on_node.job import judge
from clusterctl.on_node.job.job_environment import job_environment, job_folder, secret_values
from clusterctl.on_node.job.keep import present_state
from clusterctl.on_node.job.launch import first_rank, member_of
from clusterctl.on_node.job.layout import Layout, read_json
from clusterctl.on_node.job.lease import holder
from clusterctl.on_node.job.processes import (
    CLONE_NEWNS,
    become_user,
    children_of,
    give_up_privileges,
    is_alive,
    variables_of,
)
from clusterctl.on_node.job.rank_end import rank_parent


def run_inside(layout: Layout, job: str, rank: str, command: list[str]) -> None:
    """This process becomes the command; `rank` is a global one, or - for the job's own environment.

    Without a command it becomes the user's shell. Raises OSError, ValueError, LookupError.
    """
    spec = read_json(layout.spec(job))
    state = str(present_state(layout, job)["state"])
    if state not in (judge.RUNNING, judge.STOPPING):
        raise ValueError("%s is %s: a command can run inside it while it runs" % (job, state))
    if spec.get("image_id"):
        raise ValueError("%s runs in containers: a command inside them is not built yet" % job)
    user = pwd.getpwnam(spec["user"])
    # All that takes root's rights is read first.
    environment = _environment(layout, spec, rank, user.pw_uid)
    command = command or [user.pw_shell or "/bin/sh"]
    if "TERM" in os.environ:
        environment["TERM"] = os.environ["TERM"]
    _enter_mounts((holder(layout, job) or {}).get("keeper"))
    become_user(user)
    if not spec["is_sudo"]:
        give_up_privileges()
    os.chdir(job_folder(layout, spec))
    try:
        os.execvpe(command[0], command, environment)
    except FileNotFoundError as e:
        raise FileNotFoundError(e.errno, "no such program", command[0]) from e


def _environment(layout: Layout, spec: dict[str, Any], rank: str, uid: int) -> dict[str, str]:
    """The rank's own, as it was started; or what all of the job's processes have here, secrets too."""
    if rank == "-":
        slot = int(read_json(layout.root / "etc/clusterctl/node.json")["slot"])
        node_rank = member_of(spec, slot)
        found = {**job_environment(layout, spec, node_rank), **secret_values(layout.secrets(spec["job"]))}
        return {**found, "RANK": str(first_rank(spec, node_rank))} if "RANK" not in found else found
    parent = rank_parent(layout.ranks(spec["job"], spec["attempt"]) / ("%d.pid" % int(rank)), uid)
    if not is_alive(parent):
        raise ValueError("rank %s has ended" % rank)
    for child in children_of(parent[0]):
        found = variables_of(child)
        if found.get("RANK") == str(int(rank)) and found.get("CLUSTERCTL_JOB") == spec["job"]:
            return found
    raise ValueError("rank %s has ended" % rank)


def _enter_mounts(keeper: Any) -> None:
    """The job's view of files: what is hidden from it is hidden here, too. Nothing where it sees what all see."""
    if keeper is None:
        return
    theirs = Path("/proc/%d/ns/mnt" % int(keeper[0]))
    if os.getuid() != 0 or os.readlink(theirs) == os.readlink("/proc/self/ns/mnt"):
        return
    namespace = os.open(theirs, os.O_RDONLY | os.O_CLOEXEC)
    if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(namespace)
