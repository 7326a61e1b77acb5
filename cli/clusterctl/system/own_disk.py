"""Whether a folder is on a disk of this computer, which no other computer writes to."""

from __future__ import annotations

import os
from pathlib import Path

from clusterctl.system.pid_namespace import INITIAL, pid_namespace
from clusterctl.system.processes import PROC

OWN_KINDS = frozenset(
    {"bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "tmpfs", "vfat", "xfs", "zfs"}
)
"""File systems that one computer mounts at a time; any other kind may be shared: nfs4, cifs, lustre, 9p, fuse."""

CONTAINERS_OWN = frozenset({"overlay", "tmpfs"})
"""Those that a container has for itself: another kind is a folder that its host, or another container, may share."""


def is_on_own_disk(folder: Path) -> bool:
    """Whether the file system that `folder` is on belongs to this computer alone; False where that is not known."""
    try:
        mounts = (PROC / "self" / "mountinfo").read_text(encoding="utf-8", errors="replace")
        return kind_of(os.path.realpath(folder), mounts) in own_kinds(pid_namespace())
    except OSError:
        return False


def own_kinds(namespace: str) -> frozenset[str]:
    """The kinds of file systems that nobody else has, seen from a pid namespace. Pure."""
    return OWN_KINDS if namespace in ("", INITIAL) else CONTAINERS_OWN


def kind_of(path: str, mounts: str) -> str | None:
    """The kind of file system at an absolute path, by the text of mountinfo (proc_pid_mountinfo(5)). Pure."""
    found: tuple[int, str] | None = None
    for line in mounts.splitlines():
        head, separator, tail = line.partition(" - ")
        words = head.split()
        if not separator or len(words) < 5 or not tail.split():
            continue
        point = _plain(words[4]).rstrip("/")
        is_above = path == point or path.startswith(f"{point}/")
        if is_above and (found is None or len(point) >= found[0]):  # of two at one place the later one is seen
            found = (len(point), tail.split()[0])
    return None if found is None else found[1]


def _plain(text: str) -> str:
    """The name of a mount point: blanks and the like are written in octal."""
    for escaped, plain in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
        text = text.replace(escaped, plain)
    return text
