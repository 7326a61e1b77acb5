"""A command inside a job that runs: in its environment and folder, as its user, and with no more rights than it has."""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import sys
from pathlib import Path
from typing import Any, List, Mapping

from clusterctl.on_node.job import container, judge
from clusterctl.on_node.job.job_containers import entry_python, variables_file, variables_inside
from clusterctl.on_node.job.job_environment import job_environment, job_folder, own_secrets, secret_values
from clusterctl.on_node.job.launch import first_rank, member_of
from clusterctl.on_node.job.launchers import ONE_EACH
from clusterctl.on_node.job.layout import Layout, read_json
from clusterctl.on_node.job.lease import holder
from clusterctl.on_node.job.present_state import present_state
from clusterctl.on_node.job.processes import children_of, is_alive, variables_of
from clusterctl.on_node.job.rank_end import rank_parent
from clusterctl.on_node.job.this_process import CLONE_NEWNS, NOT_FOUND, become_user, give_up_privileges


def answer_exec(words: List[str]) -> int:
    """The verb: `words` are the job, the rank or -, and the command. Says on stderr what goes wrong."""
    job, rank, *command = words
    try:
        run_inside(Layout(), job, rank, command)
    except (OSError, ValueError, LookupError) as e:
        return _refused(e)
    return 0


def answer_join(words: List[str]) -> int:
    """The verb, in a container of the job; `container_argv` makes its words. Says on stderr what goes wrong."""
    job, rank, first, ranks, secrets, variables, _, *command = words
    try:
        join(job, rank, int(first), (Path(ranks), Path(secrets), Path(variables)), command)
    except (OSError, ValueError, LookupError) as e:
        return _refused(e)
    return 0


def _refused(error: Exception) -> int:
    """Says why there is no command; the exit code that a shell would have."""
    print("clusterctl: %s" % error, file=sys.stderr, flush=True)
    return NOT_FOUND if isinstance(error, FileNotFoundError) else 1


def run_inside(layout: Layout, job: str, rank: str, command: list[str]) -> None:
    """This process becomes the command; `rank` is a global one, or - for the job's own environment.

    Without a command it becomes the user's shell. Raises OSError, ValueError, LookupError.
    """
    spec = read_json(layout.spec(job))
    state = str(present_state(layout, job)["state"])
    if state not in (judge.RUNNING, judge.STOPPING):
        raise ValueError("%s is %s: a command can run inside it only while it runs" % (job, state))
    if spec.get("image_id"):
        argv = container_argv(layout, spec, rank, command, running_program(keeper_of(job, holder(layout, job))))
        os.execvpe(argv[0], argv, container.CLIENT_ENVIRONMENT)
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
    _become(command, environment)


def container_argv(layout: Layout, spec: dict[str, Any], rank: str, command: list[str], program: str) -> list[str]:
    """The engine's argv for a command in the rank's container, or in the job's first one on this node.

    `program` is our program as the container has it: it finds the rank there, and its variables, which no argv shows.
    """
    user = pwd.getpwnam(spec["user"])
    slot = int(read_json(layout.node_file)["slot"])
    node_rank = member_of(spec, slot)
    first, job, attempt = first_rank(spec, node_rank), spec["job"], int(spec["attempt"])
    # A launcher has all ranks of a node in its own container; else each rank has one.
    number = int(rank) - first if rank != "-" and spec["launcher"] in ONE_EACH else 0
    has_terminal = os.isatty(0) and os.isatty(1)
    request = container.ExecRequest(
        engine=container.present_engine() or container.DOCKER,
        name=container.container_name(job, attempt, number),
        uid=user.pw_uid,
        gid=user.pw_gid,
        folder=str(job_folder(layout, spec)),
        has_terminal=has_terminal,
        terminal_type=os.environ.get("TERM", "") if has_terminal else "",
    )
    places = [layout.ranks(job, attempt), layout.secrets(job), variables_file(layout, job, attempt, number)]
    words = [job, rank, str(first), *map(str, places)]
    return container.exec_argv(request, [entry_python(spec), "-IS", program, "join", *words, "--", *command])


def running_program(keeper: tuple[int, int]) -> str:
    """The path of our program that the job's keeper runs here. The job's containers have that one, and no newer one."""
    words = Path("/proc/%d/cmdline" % keeper[0]).read_bytes().split(b"\0")
    return os.fsdecode(words[words.index(b"keep") - 1])


def join(job: str, rank: str, first: int, places: tuple[Path, Path, Path], command: list[str]) -> None:
    """In a container of the job: this process becomes the command, with the rank's variables or the job's own.

    `places`: the folder of ranks, that of secrets, and the file of variables. Raises OSError, ValueError, LookupError.
    """
    ranks, secrets, variables = places
    if rank == "-":
        own = variables_inside(variables, os.environ)
        environment = {**os.environ, "RANK": str(first), **own, **secret_values(secrets)}
    else:
        environment = rank_variables_now(ranks, job, rank, os.getuid())
    environment.update({name: os.environ[name] for name in ("TERM",) if name in os.environ})
    command = command or [shutil.which("bash") or "/bin/sh"]
    _become(command, environment)


def _become(command: list[str], environment: dict[str, str]) -> None:
    try:
        os.execvpe(command[0], command, environment)
    except FileNotFoundError as e:
        raise FileNotFoundError(e.errno, "no such program", command[0]) from e


def _environment(layout: Layout, spec: dict[str, Any], rank: str, uid: int) -> dict[str, str]:
    """The rank's variables as it was started; for `-` what all of the job's processes have here, secrets too."""
    if rank == "-":
        slot = int(read_json(layout.node_file)["slot"])
        node_rank = member_of(spec, slot)
        found = {**job_environment(layout, spec, node_rank), **own_secrets(layout.secrets(spec["job"]), uid)}
        return {**found, "RANK": str(first_rank(spec, node_rank))} if "RANK" not in found else found
    return rank_variables_now(layout.ranks(spec["job"], spec["attempt"]), spec["job"], rank, uid)


def rank_variables_now(ranks: Path, job: str, rank: str, uid: int, proc: Path = Path("/proc")) -> dict[str, str]:
    """What the process of a rank was started with. Raises OSError, ValueError where the rank has ended."""
    parent = rank_parent(ranks / ("%d.pid" % int(rank)), uid)
    if not is_alive(parent, proc):
        raise ValueError("rank %s has ended" % rank)
    for child in children_of(parent[0], proc):
        found = variables_of(child, proc)
        if found.get("RANK") == str(int(rank)) and found.get("CLUSTERCTL_JOB") == job:
            return found
    raise ValueError("rank %s has ended" % rank)


def keeper_of(job: str, held: Mapping[str, Any] | None) -> tuple[int, int]:
    """The job's keeper here, as (pid, start). Raises ValueError where there is none (any more).

    A job may end while a command is on its way into it; a command without the job's view of files would see the keys
    that are hidden from the job.
    """
    keeper = None if held is None else held.get("keeper")
    if keeper is None:
        raise ValueError("%s has just ended: a command can run inside it only while it runs" % job)
    return int(keeper[0]), int(keeper[1])


def _enter_mounts(job: str, keeper: tuple[int, int]) -> None:
    """Takes the job's view of files: what is hidden from the job is then hidden from this process, too."""
    namespace = os.open("/proc/%d/ns/mnt" % keeper[0], os.O_RDONLY | os.O_CLOEXEC)
    if not is_alive(keeper):  # its number may be another process's by now
        raise ValueError("%s has just ended: a command can run inside it only while it runs" % job)
    is_other = not os.path.samestat(os.fstat(namespace), os.stat("/proc/self/ns/mnt"))
    if is_other and ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(namespace)
