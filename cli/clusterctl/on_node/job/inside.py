"""A command inside a job that runs: in its environment and folder, as its user, and with no more rights than it has."""

from __future__ import annotations

import ctypes
import os
import pwd
from typing import Any, Mapping

from clusterctl.on_node.job import judge
from clusterctl.on_node.job.job_environment import job_environment, job_folder, own_secrets
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
    if os.getuid() == 0:
        _enter_mounts(job, keeper_of(job, holder(layout, job)))
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
        slot = int(read_json(layout.node_facts)["slot"])
        node_rank = member_of(spec, slot)
        found = {**job_environment(layout, spec, node_rank), **own_secrets(layout.secrets(spec["job"]), uid)}
        return {**found, "RANK": str(first_rank(spec, node_rank))} if "RANK" not in found else found
    parent = rank_parent(layout.ranks(spec["job"], spec["attempt"]) / ("%d.pid" % int(rank)), uid)
    if not is_alive(parent):
        raise ValueError("rank %s has ended" % rank)
    for child in children_of(parent[0]):
        found = variables_of(child)
        if found.get("RANK") == str(int(rank)) and found.get("CLUSTERCTL_JOB") == spec["job"]:
            return found
    raise ValueError("rank %s has ended" % rank)


def keeper_of(job: str, held: Mapping[str, Any] | None) -> tuple[int, int]:
    """The process that keeps the job here, as (pid, start). Raises ValueError where there is none (any more).

    A job may end while a command is on its way into it; a command without the job's view of files would see the keys
    that are hidden from the job.
    """
    keeper = None if held is None else held.get("keeper")
    if keeper is None:
        raise ValueError("%s has just ended: a command can run inside it while it runs" % job)
    return int(keeper[0]), int(keeper[1])


def _enter_mounts(job: str, keeper: tuple[int, int]) -> None:
    """The job's view of files: what is hidden from it is hidden here, too."""
    namespace = os.open("/proc/%d/ns/mnt" % keeper[0], os.O_RDONLY | os.O_CLOEXEC)
    if not is_alive(keeper):  # its number may be another process's by now
        raise ValueError("%s has just ended: a command can run inside it while it runs" % job)
    is_other = not os.path.samestat(os.fstat(namespace), os.stat("/proc/self/ns/mnt"))
    if is_other and ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(namespace)
