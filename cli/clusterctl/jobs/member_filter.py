"""Which entries of an archive may be written below a folder, on every supported Python.

Python has it as `tarfile.data_filter` since 3.11.4 (PEP 706); Debian 12 has 3.11.2.
"""

from __future__ import annotations

import copy
import os
import tarfile
from pathlib import Path

FOLDER_MODE = 0o755


def written_as(member: tarfile.TarInfo, folder: Path) -> tarfile.TarInfo | None:
    """The entry as it is written below the folder: nobody's in particular, with plain permissions.

    None for what would lie or lead outside, and for what is neither file, folder nor link.
    """
    if not hasattr(tarfile, "data_filter"):
        return without_data_filter(member, folder)
    try:
        return tarfile.data_filter(member, str(folder))
    except tarfile.FilterError:
        return None


def without_data_filter(member: tarfile.TarInfo, folder: Path) -> tarfile.TarInfo | None:
    """What `tarfile.data_filter` gives, or None where it raises FilterError."""
    root = os.path.realpath(folder)
    name = member.name.lstrip("/")
    is_known = member.isreg() or member.isdir() or member.issym() or member.islnk()
    if not is_known or not _is_inside(root, name):
        return None
    if member.issym() and not _is_inside(root, os.path.dirname(name), member.linkname):
        return None
    if member.islnk() and not _is_inside(root, member.linkname):
        return None
    written = copy.copy(member)
    written.name = name
    written.mode = FOLDER_MODE if member.isdir() or member.issym() else _file_mode(member.mode)
    written.uid, written.gid, written.uname, written.gname = os.getuid(), os.getgid(), "", ""
    return written


def _is_inside(root: str, *path: str) -> bool:
    """Whether a path from there ends there, links followed; an absolute one is not from there."""
    if os.path.isabs(path[-1]):
        return False
    return os.path.commonpath([os.path.realpath(os.path.join(root, *path)), root]) == root


def _file_mode(mode: int) -> int:
    """Its owner reads and writes it, others at most read it, and nobody runs what its owner may not."""
    kept = mode & 0o755
    return (kept if kept & 0o100 else kept & ~0o111) | 0o600
