"""A proxy command: becomes the system's ssh that leads to a node through another node, or the node's own session.

One ssh process keeps the connection to the node that leads to the others, and serves the others by OpenSSH's
multiplexing (ssh_config(5), ControlMaster and ControlPersist; `ssh -W` through it, 2026-11-26). It is found by the
socket in `warm/sessions/<cluster>`. Standard library only: run by `python -I -S` for each connection.

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
CONTROL, LEADER, HEARD, FAILED, LOCK, LOG = "control", "leader", "heard", "failed", "lock", "log"
"""Files in the folder: the socket, which node leads, when it last answered, when opening last failed, the lock, the
opener's log."""
SILENT_S = 10.0
"""A leading node that is silent for so long is replaced."""
HEARD_S = 3.0
"""A leading node that answered so short a time ago is not asked again."""
FAILED_S = 15.0
"""After a failure nobody tries again for so long; each node has a session of its own."""
OPENING_S = 24.0
EXIT_S = 2.0
GREETING = b"SSH-"
VARIABLE = "CLUSTERCTL_WARM"
OFF = {"no", "off", "0", "false"}
"""With one of these in the variable the person wants no connections kept, as `broker/place.py` has it: this program
cannot import that one, and a test compares them."""


def main(arguments: Sequence[str]) -> None:
    """Never returns: this process becomes another program."""
    home, cluster, host, port, *session = arguments
    folder = Path(home, "warm", FOLDER_NAME, cluster)
    argv = session
    with contextlib.suppress(OSError):
        if os.environ.get(VARIABLE, "").lower() not in OFF and is_open(folder, Path(home), cluster):
            os.chdir(folder)  # a socket's name may have 108 bytes, and the folder's alone more (unix(7))
            argv = through_argv(host, port)
    try:
        os.execvp(argv[0], argv)
    except OSError as e:
        sys.exit(f"{argv[0]}: {e.strerror}")


def through_argv(host: str, port: int | str) -> list[str]:
    """The ssh whose input and output are that port, by the socket in the working folder or not at all."""
    settings = ("-o", "ProxyCommand=false", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR")
    return ["ssh", "-F", "none", "-S", CONTROL, *settings, "-W", f"{host}:{port}", "shared"]


def is_open(folder: Path, home: Path, cluster: str) -> bool:
    """The shared session is open, here and now; it is opened if need be. Raises OSError."""
    inventory = Path(home, "inventory", f"{cluster}.json")
    if _is_fresh(folder / HEARD, HEARD_S) and _leader(folder, inventory) is not None:
        return True
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(folder) as lock:  # the others wait for the first one's answer
        leader = _leader(folder, inventory)
        if leader is not None and (_is_fresh(folder / HEARD, HEARD_S) or answers(folder, leader)):
            return True
        if _is_fresh(folder / FAILED, FAILED_S):
            return False
        silent = end(folder)
        if _opened(home, cluster, silent, folder, lock):
            return True
        (folder / FAILED).touch()
        return False


def answers(folder: Path, leader: dict[str, str]) -> bool:
    """The leading node lets us through: its own SSH server greets, by the session that leads to all others, too."""
    argv = through_argv(leader["host"], leader["port"])
    with subprocess.Popen(
        argv, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as ssh:
        assert ssh.stdout is not None
        try:
            has_come = select.select([ssh.stdout], [], [], SILENT_S)[0]
            if not has_come or not os.read(ssh.stdout.fileno(), 80).startswith(GREETING):
                return False
        finally:
            ssh.kill()
    (folder / HEARD).touch()
    return True


def end(folder: Path) -> str:
    """Ends the process at the socket, if there is one; gives the instance that it led through, or nothing."""
    try:
        silent = str(json.loads((folder / LEADER).read_bytes())["instance_id"])
    except (OSError, ValueError, LookupError, TypeError):
        silent = ""
    if (folder / CONTROL).exists():
        argv, null = ["ssh", "-F", "none", "-S", CONTROL, "-O", "exit", "shared"], subprocess.DEVNULL
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(argv, cwd=folder, stdin=null, stdout=null, stderr=null, timeout=EXIT_S, check=False)
    for name in (CONTROL, LEADER, HEARD):
        (folder / name).unlink(missing_ok=True)
    return silent


def _leader(folder: Path, inventory: Path) -> dict[str, str] | None:
    """The node that leads, while its machine is the cluster's and somebody listens at the socket."""
    try:
        leader = json.loads((folder / LEADER).read_bytes())
        is_there = (
            json.dumps(leader["instance_id"]).encode() in inventory.read_bytes() and (folder / CONTROL).is_socket()
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return leader if is_there else None


def _opened(home: Path, cluster: str, silent: str, folder: Path, lock: int) -> bool:
    """Another process opens the session; it has the lock as long as it lives, also where this one is ended."""
    argv = [sys.executable, "-m", "clusterctl.ssh.shared_session.opening", str(home), cluster, silent]
    with open(folder / LOG, "wb") as log:
        opener = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(lock,))
    try:
        return opener.wait(timeout=OPENING_S) == 0
    except subprocess.TimeoutExpired:
        opener.kill()
        opener.wait()
        return False


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """The descriptor of the lock, which is this process's until the block ends. Raises OSError."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


def _is_fresh(file: Path, most_s: float) -> bool:
    try:
        return 0 <= time.time() - file.stat().st_mtime < most_s
    except OSError:
        return False


if __name__ == "__main__":
    main(sys.argv[1:])
