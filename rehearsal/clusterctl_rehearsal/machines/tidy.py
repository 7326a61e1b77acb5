"""Removing what a dead machine leaves behind; each step may find its work done already."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from clusterctl_rehearsal.machines import cgroup, network
from clusterctl_rehearsal.machines.folders import MachineFolder, remove_tree
from clusterctl_rehearsal.machines.inotify import InotifyLimit
from clusterctl_rehearsal.machines.names import container_name

_NSPAWN_FOLDER = Path("/run/systemd/nspawn")
_FLOCK_FORMAT = "hhqqi4x"  # struct flock on 64-bit Linux: type, whence, start, length, pid


def tidy(trees: cgroup.CgroupTrees, folder: MachineFolder) -> None:
    """Kill what still runs of a machine, then remove its cgroups, network, traces in /run, and files."""
    cgroup.kill(trees, folder.cluster, folder.node)
    cgroup.remove(trees, folder.cluster, folder.node)
    network.detach(folder.cluster, folder.node)
    forget_container(container_name(folder.cluster, folder.node))
    remove_tree(folder.path)
    if next(cgroup.machines(trees), None) is None:
        InotifyLimit().put_back()


def forget_container(name: str) -> None:
    """Remove what a killed nspawn leaves in /run, which on some hosts is on disk."""
    remove_tree(_NSPAWN_FOLDER / "propagate" / name)
    for path in (_NSPAWN_FOLDER / "locks").glob("inode-*"):
        _remove_stale_lock(path)


def _remove_stale_lock(path: Path) -> None:
    """Remove a lock file that nobody holds; nspawn looks again when one vanishes under it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack(_FLOCK_FORMAT, fcntl.F_WRLCK, 0, 0, 0, 0))
        path.unlink(missing_ok=True)
    except OSError:  # held by a running machine
        return
    finally:
        os.close(descriptor)
