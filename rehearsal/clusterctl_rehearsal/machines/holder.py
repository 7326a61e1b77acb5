"""The process that holds a cluster's network where the caller is not root: a VPC in a user namespace.

    python -S -m clusterctl_rehearsal.machines.holder ROOT CLUSTER

It owns a user namespace in which the caller is root, and in it the network namespace with
the bridge. It only keeps them alive; the network ends with it and its last machine.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from clusterctl_rehearsal.machines.connect import HOLDER_FILE
from clusterctl_rehearsal.machines.detached import STARTED, become_independent, tell
from clusterctl_rehearsal.machines.kernel import CLONE_NEWNET, CLONE_NEWUSER, unshare
from clusterctl_rehearsal.put_in_place import put_in_place


def main(arguments: list[str]) -> None:
    """Become independent, make the namespaces, report that to the caller, stay until SIGTERM."""
    root, cluster = arguments
    become_independent()
    try:
        own_namespaces()
        put_in_place(Path(root) / cluster / HOLDER_FILE, str(os.getpid()))
    except OSError as error:
        tell(f"{error}")
        return
    tell(STARTED)
    while True:
        signal.pause()


def own_namespaces() -> None:
    """Enter a new user namespace, as its root, and a new network namespace in it."""
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER | CLONE_NEWNET)
    # Linux lets a plain user map a group only after giving up setgroups.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


if __name__ == "__main__":
    main(sys.argv[1:])
