"""The start of a job's keeper on one node, as a service of the job's own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Sequence

from clusterctl.on_node.job import lease
from clusterctl.on_node.job.layout import Layout, read_json

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
"""Keys to other nodes, and the sockets of the login user's sessions: those of its SSH agent, systemd and keyring."""
LOGIND_FILE = "run/systemd/logind.conf.d/50-clusterctl-job.conf"
Run = Callable[..., subprocess.CompletedProcess[bytes]]


def answer_start(layout: Layout, job: str, program: Path) -> Dict[str, Any]:
    """The verb `start`: starts the job's keeper, which starts the supervisor; that sees to all else."""
    if not lease.renew(layout, job):
        raise ValueError("%s has lost its lease on the node" % job)
    error = start_keeper(layout, job, program)
    return {"error": error} if error else {}


def start_keeper(layout: Layout, job: str, program: Path) -> str:
    """Starts the keeper apart from this session; gives an empty text, or why the keeper is not there."""
    argv = [*with_own_tmp(layout, job), sys.executable, "-IS", str(program), "keep", job]
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
    # For every job: the one that wrote the file may have been killed before this, or logind may not have answered.
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
    error = done.stderr.decode(errors="replace").strip()[-500:]
    return "%s: %s" % (argv[0], error) if done.returncode else ""


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
        "ExecStopPost=%s -IS %s clear-up %s" % (sys.executable, program, job),
        *([] if is_sudo else safe),
    ]
    return [
        *("systemd-run", "--quiet", "--collect", "--unit", UNIT % job),
        *("--description", "clusterctl job " + job),
        *(word for value in properties for word in ("-p", value)),
    ]


def containers_end_argv(job: str, program: Path) -> list[str]:
    """The argv that starts a service to end the job's containers: the job's own service has only 2 s to stop.

    The job's service does not hold them anyway: docker's are children of its daemon.
    """
    begin = ["systemd-run", "--quiet", "--collect", "--no-block", "--unit", UNIT % job + "-containers"]
    return [*begin, sys.executable, "-IS", str(program), "end-containers", job]


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
