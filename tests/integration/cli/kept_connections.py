"""What tests of kept connections ask of a loopback cluster."""

from __future__ import annotations

import fcntl
import shutil
import time
from typing import TYPE_CHECKING

from tests.integration.cli.waiting import comes_true

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster

WARM = {"CLUSTERCTL_WARM": "yes"}
PORT = "set -- $SSH_CONNECTION; echo $2"


def ports(cluster: LoopbackCluster, *flags: str, environ: dict[str, str] | None = None) -> list[str]:
    """The client's port of each node's connection."""
    done = cluster.run("ssh", *flags, PORT, environ=environ)
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.decode().splitlines())


def await_warm(cluster: LoopbackCluster) -> None:
    assert comes_true((cluster.home / "warm" / "socket").exists)


def end_warm(cluster: LoopbackCluster) -> None:
    """Returns when no process keeps connections, and none will: one that a command has just begun finds no folder."""
    folder = cluster.home / "warm"
    if folder.is_dir():
        lock = (folder / "lock").open("w") if (folder / "lock").exists() else None
        gone = folder.rename(folder.with_name(f"warm-{time.monotonic_ns()}"))  # at once, whoever writes into it
        if lock is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)  # returns when the process has ended
            lock.close()
        shutil.rmtree(gone, ignore_errors=True)
