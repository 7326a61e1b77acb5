"""The keeper of a job on one node: starts the supervisor, and clears up behind it however it ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Sequence

from clusterctl.on_node.job import job_containers, judge, lease, task_names
from clusterctl.on_node.job.events import note_event
from clusterctl.on_node.job.layout import Layout, read_json, read_state, write_state
from clusterctl.on_node.job.processes import adopt_orphans, end_all, itself
from clusterctl.on_node.job.supervise import boot_id

KILLED_WITHIN_S = 10.0
UNIT = "clusterctl-job-%s"
RELOAD_LOGIND = ("systemctl", "kill", "--kill-who=main", "--signal=HUP", "systemd-logind.service")
"""logind then reads its files again (systemd-logind, since 239), and knows its sessions as before."""
RELOAD_S = 5.0
"""A logind that does not answer holds no job up: the job runs all the same."""
SERVICE_S = 20.0
STARTED_WITHIN_S = 40.0
START_WITHIN_S = RELOAD_S + SERVICE_S + STARTED_WITHIN_S
"""The longest that `start_keeper` takes: whoever asks the node to start has to wait longer (`start.START_S`)."""
POLL_S = 0.05
HIDDEN = ("/etc/clusterctl/ssh_key", "/etc/clusterctl/barrier", "/run/user")
"""What opens other nodes, and what sessions of the login user have open: its agent, its own systemd, its keyring."""
LOGIND_FILE = "run/systemd/logind.conf.d/50-clusterctl-job.conf"
Run = Callable[..., subprocess.CompletedProcess[bytes]]


def start_keeper(layout: Layout, job: str, program: Path) -> str:
    """Starts the keeper apart from this session; gives an empty text, or why the keeper is not there."""
    argv = [*with_own_tmp(layout, job), sys.executable, "-I", str(program), "keep", job]
    if Path("/run/systemd/system").is_dir():
        why = start_service(layout, job, program, argv)
        if why:
            return why
    else:
        _detached(argv, layout.folder(job) / "supervisor.log")
    until = time.monotonic() + STARTED_WITHIN_S
    while not lease.is_kept(layout, job):
        if time.monotonic() > until:
            return "its keeper did not start within %g s" % STARTED_WITHIN_S
        time.sleep(POLL_S)
    return ""


def start_service(layout: Layout, job: str, program: Path, argv: list[str], *, run: Run = subprocess.run) -> str:
    """Starts `argv` as the job's own service; gives an empty text, or why it did not start. `run`: subprocess.run."""
    keep_shared_memory(layout.root)
    # By each job: the one that wrote the file may have been killed before, and logind may not have answered it.
    _failure(RELOAD_LOGIND, RELOAD_S, run)
    spec = read_json(layout.spec(job))
    service = service_argv(job, program, is_sudo=bool(spec["is_sudo"]), has_image=bool(spec.get("image_id")))
    return _failure([*service, *argv], SERVICE_S, run)


def _failure(argv: Sequence[str], timeout_s: float, run: Run) -> str:
    """Runs a command; gives an empty text, or why it failed."""
    try:
        done = run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return "%s: no answer within %g s" % (argv[0], timeout_s)
    said = done.stderr.decode(errors="replace").strip()[-500:]
    return "%s: %s" % (argv[0], said) if done.returncode else ""


def with_own_tmp(layout: Layout, job: str) -> list[str]:
    """What comes before the keeper's argv, so that /tmp is the job's own for it and all that it starts."""
    if not read_json(layout.spec(job)).get("has_own_tmp"):
        return []
    folder = layout.tmp(job)
    folder.mkdir(exist_ok=True)
    folder.chmod(0o1777)
    mount = 'mount --bind "$0" /tmp && exec "$@"'
    # Where nobody is root, as on process machines, only a user namespace lets somebody mount.
    rights = [] if os.getuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    return ["unshare", *rights, "--mount", "--propagation", "private", "sh", "-c", mount, str(folder)]


def keep_shared_memory(root: Path) -> None:
    """Has logind keep shared memory from its next reload on; else it removes that of users whose last session ends.

    RemoveIPC=yes is its default (logind.conf(5)), and what belongs to the ranks of a job in /dev/shm is the login
    user's, who has no session while nobody is logged in.
    """
    path, text = root / LOGIND_FILE, "[Login]\nRemoveIPC=no\n"
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def service_argv(job: str, program: Path, *, is_sudo: bool, has_image: bool = False) -> list[str]:
    """The argv that runs a service of the job's own: it outlives this session, and all that it started ends with it."""
    safe = ["NoNewPrivileges=yes", *("InaccessiblePaths=-" + path for path in HIDDEN)]
    properties = [
        "KillMode=control-group",
        "TimeoutStopSec=2",
        "LimitMEMLOCK=infinity",
        "LimitNOFILE=1048576",
        "TasksMax=infinity",
        "OOMPolicy=continue",
        *(["ExecStopPost=" + " ".join(containers_end_argv(job, program))] if has_image else []),
        "ExecStopPost=%s -I %s clear-up %s" % (sys.executable, program, job),
        *([] if is_sudo else safe),
    ]
    return [
        *("systemd-run", "--quiet", "--collect", "--unit", UNIT % job),
        *("--description", "clusterctl job " + job),
        *(word for value in properties for word in ("-p", value)),
    ]


def keep(layout: Layout, job: str, program: Path) -> None:
    """Returns when nothing of the job is left on this node."""
    adopt_orphans()
    if not lease.hold(layout, job):
        return  # it came too late: another job has what it held
    layout.in_use(job).parent.mkdir(parents=True, exist_ok=True)
    layout.in_use(job).write_text("%d %d\n" % tuple(itself()))
    signal.signal(signal.SIGTERM, lambda number, frame: layout.cancel(job).touch())

    def supervised() -> int:
        task_names.serve_task(layout, read_json(layout.spec(job)), program)
        return subprocess.Popen([sys.executable, "-I", str(program), "supervise", job]).wait()

    def end() -> None:
        end_all(job, os.getpid(), KILLED_WITHIN_S)
        job_containers.remove(layout, job)

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
    """Takes away all that says that the job runs; for after its service has ended, even if the keeper was killed."""
    tell_lost(layout, job, "its keeper there was killed")
    shutil.rmtree(layout.tmp(job), ignore_errors=True)
    lease.forget(layout, job)


def containers_end_argv(job: str, program: Path) -> list[str]:
    """The argv that starts a service to end the job's containers: the job's own service has only 2 s to stop.

    The job's service does not hold them anyway: docker's are children of its daemon.
    """
    begin = ["systemd-run", "--quiet", "--collect", "--no-block", "--unit", UNIT % job + "-containers"]
    return [*begin, sys.executable, "-I", str(program), "end-containers", job]


def end_containers(layout: Layout, job: str) -> None:
    """Ends the job's processes on this node, and then what the engine has of its containers."""
    end_all(job, None, KILLED_WITHIN_S)
    job_containers.remove(layout, job)


def cancel(layout: Layout, job: str, *, is_to_restart: bool = False) -> dict[str, Any]:
    """Cancels a job: if it still runs, its supervisor hears of that. Returns the state in which the job is.

    `is_to_restart`: its workflow will start the task again, by a job of another name. Raises OSError, ValueError.
    """
    if is_to_restart:
        with contextlib.suppress(OSError):  # a disk may be full; the job is cancelled all the same
            layout.restart(job).touch()
    else:
        layout.restart(job).unlink(missing_ok=True)
    state = present_state(layout, job)
    if state["state"] not in judge.FINAL:
        layout.cancel(job).touch()
    return state


def listed_state(layout: Layout, job: str) -> dict[str, Any]:
    """How the job goes on this node; `is_to_restart` where it has been cancelled for that."""
    return {**present_state(layout, job), **({"is_to_restart": True} if layout.restart(job).exists() else {})}


def present_state(layout: Layout, job: str) -> dict[str, Any]:
    """How the job goes on this node; lost, where nobody is left to see to it. Raises OSError, ValueError."""
    found = read_state(layout, job)
    if found["state"] in judge.FINAL:
        return found
    if found["state"] == judge.PREPARING and lease.holder(layout, job) is not None:
        return found
    if lease.is_kept(layout, job) and found["boot_id"] == boot_id(layout):
        return found
    again = read_state(layout, job)  # it may have ended between the two looks
    if again["state"] in judge.FINAL:
        return again
    if again["state"] == judge.PREPARING:
        return _lost(again, "the command that prepared the job ended before it was started")
    return _lost(again, "the node was restarted" if again["boot_id"] != boot_id(layout) else "its supervisor is gone")


def tell_lost(layout: Layout, job: str, why: str) -> None:
    """Writes down that the job is lost, unless it is written down already how it ended."""
    try:
        found = read_state(layout, job)
    except (OSError, ValueError):
        return
    if found["state"] not in judge.FINAL:
        lost = _lost(found, why)
        write_state(layout, job, lost)
        note_event(layout, job, judge.LOST, attempt=found["attempt"], why=lost["outcome"]["cause"])


def _lost(found: dict[str, Any], why: str) -> dict[str, Any]:
    told = "Node %s was lost: %s" % (found["slot"], why)
    return {**found, "state": judge.LOST, "since_s": time.time(), "outcome": judge.outcome(judge.LOST, told, ())}


def _how(status: int) -> str:
    return "signal %d" % -status if status < 0 else "exit %d" % status


def _detached(argv: list[str], log: Path) -> None:
    """Without systemd: runs `argv` in a grandchild with a session of its own, which init adopts."""
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    with log.open("ab") as stream, open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    os.closerange(3, 256)
    os.execvp(argv[0], argv)
