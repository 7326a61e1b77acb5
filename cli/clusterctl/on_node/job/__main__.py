"""What jobs need of a node, one verb each: prints JSON lines and ends with 0, or `{"error": …}` and 1."""

from __future__ import annotations

import json
import os
import sys
import tarfile
from pathlib import Path
from typing import Any, Callable

from clusterctl.on_node.job import lease
from clusterctl.on_node.job.container import present_engine
from clusterctl.on_node.job.events import read_events
from clusterctl.on_node.job.follow import follow
from clusterctl.on_node.job.image_pull import leave_when_told, pulled_image
from clusterctl.on_node.job.inside import join, run_inside
from clusterctl.on_node.job.job_containers import attend, enter
from clusterctl.on_node.job.keep import cancel, clear_up, end_containers, keep, listed_state, start_keeper
from clusterctl.on_node.job.layout import Layout, read_json
from clusterctl.on_node.job.mpi_agent import write_order
from clusterctl.on_node.job.name_server import serve_names
from clusterctl.on_node.job.node_ranks import become
from clusterctl.on_node.job.pack import pack
from clusterctl.on_node.job.prepare import discard, gpus, node_facts, receive, remove_old
from clusterctl.on_node.job.rank import NOT_FOUND, run_rank
from clusterctl.on_node.job.ready import Readying
from clusterctl.on_node.job.shared_storage import share_logs
from clusterctl.on_node.job.supervise import supervise

LAYOUT = Layout()
BESIDE = ("exec", "join", "pack")
PROGRAM = Path(sys.argv[0]).resolve()


def main(verb: str, arguments: list[str]) -> int:
    """The exit code."""
    if verb == "rank":
        begin = arguments.index("--")
        folder, secrets, *flags = arguments[:begin]
        return run_rank(Path(folder), Path(secrets), flags, arguments[begin + 1 :])
    if verb == "mpi-agent":
        ranks = LAYOUT.ranks(os.environ["CLUSTERCTL_JOB"], int(os.environ["CLUSTERCTL_ATTEMPT"]))
        return write_order(ranks, arguments)
    if verb == "become":
        may_sudo, _, *command = arguments
        become(is_privileged=may_sudo == "yes")
        os.execvp(command[0], command)
    if verb == "inside":
        variables, _, *command = arguments
        enter(Path(variables), command)
    if verb == "attend":
        variables, _, *command = arguments
        return attend(Path(variables), command)
    if verb == "serve-names":
        serve_names(LAYOUT.root)
        return 0
    if verb in DONE:
        DONE[verb](arguments[0])
        return 0
    if verb in BESIDE:
        return beside_its_stdout(verb, arguments)
    try:
        if verb == "follow":
            job, attempt, segment, offset, is_followed = arguments
            follow(LAYOUT, job, int(attempt), (int(segment), int(offset)), is_followed=is_followed == "yes")
            return 0
        print(json.dumps(ANSWERS[verb](*arguments)), flush=True)
    except (OSError, ValueError, LookupError, tarfile.TarError) as e:
        # Ours are sentences; Python's own need the name of their kind to be one.
        told = str(e) if type(e) is ValueError else "%s: %s" % (type(e).__name__, e)
        print(json.dumps({"error": told}), flush=True)
        return 1
    return 0


def beside_its_stdout(verb: str, arguments: list[str]) -> int:
    """Verbs whose stdout is a program's or an archive: what goes wrong is said on stderr."""
    try:
        if verb == "exec":
            run_inside(LAYOUT, arguments[0], arguments[1], arguments[2:])
        if verb == "join":
            job, rank, first, ranks, secrets, variables, _, *command = arguments
            join(job, rank, int(first), (Path(ranks), Path(secrets), Path(variables)), command)
        job, what, path, most_bytes = arguments
        pack(LAYOUT, job, what, path, int(most_bytes), sys.stdout.buffer)
    except (OSError, ValueError, LookupError, tarfile.TarError) as e:
        print("clusterctl: %s" % e, file=sys.stderr, flush=True)
        return NOT_FOUND if verb != "pack" and isinstance(e, FileNotFoundError) else 1
    return 0


def answer_take(job: str, by: str, wanted: str, ports: str) -> dict[str, Any]:
    """Takes the node, or GPUs of it, for a job. `wanted`: all, or a number of GPUs; `ports`: the job's own, as `1,2`.

    `gpus`: the indices of the GPUs that the job has now, null for all of them; `holders`: who is in the way.
    `are_ports_taken`: another job was given one of them meanwhile.
    """
    declared = int(read_json(LAYOUT.node_file)["gpus_per_node"])
    count = None if wanted == "all" else int(wanted)
    own = [int(port) for port in ports.split(",")]
    there = 0 if count is None else gpus(declared)
    try:
        indices, in_the_way = lease.take(LAYOUT, job, by, wanted=count, gpus=there, ports=own)
    except lease.PortsTaken:
        return {"gpus": None, "holders": [], "are_ports_taken": True}
    return {"gpus": indices, "holders": in_the_way}


def answer_pull(image: str, has_login: str = "no") -> dict[str, Any]:
    """The id of the image, which is on this node now; reads the registry's login, if any, as a line of JSON."""
    leave_when_told()
    login = str(json.loads(sys.stdin.buffer.readline())["login"]) if has_login == "yes" else ""
    return {"image_id": pulled_image(present_engine(), image, root=LAYOUT.root, login=login)}


def answer_prepare(job: str) -> dict[str, Any]:
    """Puts a job's files in place; reads a line of JSON and the snapshot behind it from stdin."""
    if not lease.renew(LAYOUT, job):
        raise ValueError("%s has lost its lease on the node" % job)
    os.umask(0o022)
    receive(LAYOUT, job, json.loads(sys.stdin.buffer.readline()), sys.stdin.buffer, PROGRAM)
    remove_old(LAYOUT, but=job)
    lease.renew(LAYOUT, job)
    return {}


def answer_lock(job: str) -> dict[str, Any]:
    """`lock`: the job's requirements with each version, for which only its first node is asked."""
    os.umask(0o022)
    return Readying(LAYOUT, job, PROGRAM).lock()


def answer_ready(job: str) -> dict[str, Any]:
    """Makes the job's interpreter and runs its setup command; reads the lock as a line of JSON from stdin."""
    os.umask(0o022)
    return Readying(LAYOUT, job, PROGRAM).make(str(json.loads(sys.stdin.buffer.readline())["lock"]))


def answer_start(job: str) -> dict[str, Any]:
    """Starts the job's keeper, which starts the supervisor; that sees to all else."""
    if not lease.renew(LAYOUT, job):
        raise ValueError("%s has lost its lease on the node" % job)
    error = start_keeper(LAYOUT, job, PROGRAM)
    return {"error": error} if error else {}


def answer_discard(job: str) -> dict[str, Any]:
    """Removes what is here of a job that was never started."""
    discard(LAYOUT, job)
    return {}


def answer_cancel(job: str, then: str = "") -> dict[str, Any]:
    """Cancels a job. `state`: the state in which it is; `then`: `restart` if its workflow starts the task again."""
    return {"state": cancel(LAYOUT, job, is_to_restart=then == "restart")}


def answer_events(job: str) -> dict[str, Any]:
    """What happened to the job on this node."""
    return {"events": read_events(LAYOUT.events(job))}


def answer_list() -> dict[str, Any]:
    """All jobs that this node knows."""
    found = []
    for path in sorted(LAYOUT.jobs.glob("*/spec.json")):
        try:
            job = path.parent.name
            found.append({"spec": read_json(path), "state": listed_state(LAYOUT, job)})
        except (OSError, ValueError, LookupError):
            continue  # it is being removed
    return {"jobs": found}


DONE: dict[str, Callable[[str], object]] = {
    "keep": lambda job: keep(LAYOUT, job, PROGRAM),
    "clear-up": lambda job: clear_up(LAYOUT, job),
    "end-containers": lambda job: end_containers(LAYOUT, job),
    "supervise": lambda job: supervise(LAYOUT, job, PROGRAM),
    "share-logs": lambda job: share_logs(LAYOUT, job),
}
"""Verbs of a job that say nothing."""
ANSWERS: dict[str, Callable[..., dict[str, Any]]] = {
    "facts": lambda job, program="": node_facts(LAYOUT, job, program),
    "take": answer_take,
    "pull": answer_pull,
    "prepare": answer_prepare,
    "lock": answer_lock,
    "ready": answer_ready,
    "start": answer_start,
    "discard": answer_discard,
    "cancel": answer_cancel,
    "list": answer_list,
    "events": answer_events,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
