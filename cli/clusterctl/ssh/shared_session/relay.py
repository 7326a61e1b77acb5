"""A proxy command: becomes the system's ssh that leads to a node through another node, or the node's own session.

One ssh process, the master, keeps the connection to the node that leads to the others, and serves the others by
OpenSSH's multiplexing (ssh_config(5), ControlMaster and ControlPersist; `ssh -W` through it, 2026-11-26). Its socket
lies in `warm/sessions/<cluster>`, and `leader` there names it. Standard library only: run by `python -I -S` for each
connection.

    relay.py HOME CLUSTER HOST PORT SESSION...
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDER_NAME = "sessions"
LEADER, HEARD, FAILED, LOCK, LOG = "leader", "heard", "failed", "lock", "log"
"""Files in the folder: which node leads and by which socket, when it last answered, when and why opening last failed,
the lock, the opener's log."""
SILENT_S = 10.0
"""A leading node that is silent for this long gets no new connections: another one leads."""
HEARD_S = 3.0
"""A leading node that answered within this time is not asked again."""
FAILED_S = 15.0
"""After a failure nobody tries again for this long; each node has a session of its own. While the same nodes fail, the
pause doubles (`opening.failure`)."""
OPENING_S = 22.0
"""How long all of it may take: waiting for the lock, asking who leads, and opening another session."""
END_S = 2.0
"""The process that opens the session is killed this long after it should have ended."""
POLL_S = 0.05
GREETING = b"SSH-"
VARIABLE = "CLUSTERCTL_WARM"
OFF = {"no", "off", "0", "false"}
"""The values of VARIABLE by which a person wants no connections kept, the same as in `broker/place.py`, which this
program cannot import; a test compares them."""


def main(arguments: Sequence[str]) -> None:
    """Never returns: this process becomes another program."""
    home, cluster, host, port, *session = arguments
    folder = Path(home, "warm", FOLDER_NAME, cluster)
    argv = session
    with contextlib.suppress(OSError):
        is_wanted = os.environ.get(VARIABLE, "").lower() not in OFF
        leader = open_leader(folder, Path(home), cluster) if is_wanted else None
        if leader is not None:
            os.chdir(folder)  # a socket's name may have 108 bytes, and the folder's alone more (unix(7))
            argv = through_argv(leader["control"], host, port)
    try:
        os.execvp(argv[0], argv)
    except OSError as e:
        sys.exit(f"{argv[0]}: {e.strerror}")


def through_argv(control: str, host: str, port: int | str) -> list[str]:
    """The ssh whose input and output are that port, by this socket in the working folder or not at all."""
    settings = ("-o", "ProxyCommand=false", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR")
    return ["ssh", "-F", "none", "-S", control, *settings, "-W", f"{host}:{port}", "shared"]


def open_leader(folder: Path, home: Path, cluster: str) -> dict[str, str] | None:
    """The node that leads now; opens the session if need be. None, or OSError, means that no session is shared."""
    inventory = Path(home, "inventory", f"{cluster}.json")
    ends_at = time.monotonic() + OPENING_S
    if (leader := _heard(folder, inventory)) is not None:
        return leader
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(folder, ends_at) as lock:  # the others wait for the first one's answer
        if (leader := _heard(folder, inventory)) is not None:
            return leader
        if not _has_time(ends_at):
            return None
        leader = _leader(folder, inventory)
        if leader is not None and answers(folder, leader):
            (folder / HEARD).touch()
            return leader
        silent = pass_over(folder)
        if not _has_time(ends_at) or _is_paused(folder, inventory):
            return None
        if _opened(home, cluster, silent, folder, lock, ends_at):
            return _leader(folder, inventory)
        (folder / FAILED).touch()
        return None


def answers(folder: Path, leader: dict[str, str], within_s: float = SILENT_S) -> bool:
    """Whether the leading node lets us through: its own SSH server greets us by the session that all others share."""
    argv = through_argv(leader["control"], leader["host"], leader["port"])
    with subprocess.Popen(
        argv, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as ssh:
        assert ssh.stdout is not None
        try:
            has_come = select.select([ssh.stdout], [], [], within_s)[0]
            return bool(has_come) and os.read(ssh.stdout.fileno(), 80).startswith(GREETING)
        finally:
            ssh.kill()


def pass_over(folder: Path) -> str:
    """Notes that nobody leads any more; returns the instance that did, or an empty text.

    Its master is not ended: connections to healthy nodes go through it, and the silence may be short. It ends as any
    other connection does, when it has heard nothing for `opening.SILENCE_S` or had no channel for `opening.KEPT_S`.
    """
    try:
        silent = str(json.loads((folder / LEADER).read_bytes())["instance_id"])
    except (OSError, ValueError, LookupError, TypeError):
        silent = ""
    for name in (LEADER, HEARD):
        (folder / name).unlink(missing_ok=True)
    return silent


def _heard(folder: Path, inventory: Path) -> dict[str, str] | None:
    """The node that leads, if it answered within `HEARD_S`."""
    return _leader(folder, inventory) if _is_fresh(folder / HEARD, HEARD_S) else None


def _leader(folder: Path, inventory: Path) -> dict[str, str] | None:
    """The node that leads, while its machine is the cluster's and its socket is there."""
    try:
        leader = json.loads((folder / LEADER).read_bytes())
        is_there = (folder / leader["control"]).is_socket() and _are_in(inventory, [leader["instance_id"]])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return leader if is_there else None


def _has_time(ends_at: float) -> bool:
    """Whether there is time to find out that a node is silent; with less time none is asked and none is tried."""
    return ends_at - time.monotonic() >= SILENT_S


def _is_paused(folder: Path, inventory: Path) -> bool:
    """Whether the last try failed a short time ago, and the machines that it tried are still the cluster's."""
    try:
        failed = json.loads((folder / FAILED).read_bytes())
        pause_s, is_same = float(failed["pause_s"]), _are_in(inventory, failed["instances"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pause_s, is_same = FAILED_S, True
    return is_same and _is_fresh(folder / FAILED, pause_s)


def _are_in(inventory: Path, instances: Sequence[str]) -> bool:
    known = inventory.read_bytes()
    return all(json.dumps(instance).encode() in known for instance in instances)


def _opened(home: Path, cluster: str, silent: str, folder: Path, lock: int, ends_at: float) -> bool:
    """Whether another process has opened the session; it has the lock while it lives, even if this process is ended.

    It runs in our folder, and without its working folder on the path (-P): nothing in the caller's folder is taken for
    one of its modules.
    """
    module = [sys.executable, "-P", "-m", "clusterctl.ssh.shared_session.opening"]
    with open(folder / LOG, "wb") as log:
        opener = subprocess.Popen(
            [*module, str(home), cluster, silent, str(ends_at)], cwd=folder, stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, pass_fds=(lock,), start_new_session=True,
        )  # fmt: skip
    try:
        return opener.wait(timeout=ends_at + END_S - time.monotonic()) == 0
    except subprocess.TimeoutExpired:
        opener.kill()
        opener.wait()
        return False


@contextlib.contextmanager
def _locked(folder: Path, ends_at: float) -> Iterator[int]:
    """The descriptor of the lock, held until the block ends. Raises OSError; TimeoutError if not held by `ends_at`."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        while not _is_taken(lock):
            if time.monotonic() > ends_at:
                raise TimeoutError
            time.sleep(POLL_S)
        yield lock
    finally:
        os.close(lock)


def _is_taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_fresh(file: Path, most_s: float) -> bool:
    try:
        return 0 <= time.time() - file.stat().st_mtime < most_s
    except OSError:
        return False


if __name__ == "__main__":
    main(sys.argv[1:])
