"""Which entries of an archive may be written below a folder, on every supported Python.

Python has `tarfile.data_filter` since 3.11.4 (PEP 706); Debian 12 has 3.11.2. Until it was fixed in 2026 it let links
through that lead outside: by a slash at the end of their own name, or by what their target becomes once it is shortened
(https://github.com/python/cpython/pull/149487, read 2026-11-26).
"""

from __future__ import annotations

import copy
import os
import tarfile
from pathlib import Path

FOLDER_MODE = 0o755


def written_as(member: tarfile.TarInfo, folder: Path) -> tarfile.TarInfo | None:
    """The entry as it may be written below the folder: without its owner, and with plain permissions.

    None for an entry that would lie outside, a link that leads outside, and whatever is no file, folder or link; and
    for what Python's own filter refuses, where there is one.
    """
    written = without_data_filter(member, folder)
    if written is None or not hasattr(tarfile, "data_filter"):
        return written
    try:
        return tarfile.data_filter(member, str(folder))
    except tarfile.FilterError:
        return None


def without_data_filter(member: tarfile.TarInfo, folder: Path) -> tarfile.TarInfo | None:
    """Does what `tarfile.data_filter` does since it was fixed, with None in the place of FilterError.

    Also refuses files and links whose names can only be a folder's, such as `a/..`.
    """
    root = os.path.realpath(folder)
    name = member.name.lstrip("/")
    parent, own_name = os.path.split(name.rstrip("/"))
    is_known = member.isreg() or member.isdir() or member.issym() or member.islnk()
    if not is_known or not _is_inside(root, name):
        return None
    if not member.isdir() and (own_name in ("", ".", "..") or os.path.realpath(os.path.join(root, name)) == root):
        return None
    if member.issym() and not _leads_inside(root, parent, member.linkname):
        return None
    if member.islnk() and not _leads_inside(root, "", member.linkname):
        return None
    written = copy.copy(member)
    written.name = name
    written.mode = FOLDER_MODE if member.isdir() or member.issym() else _file_mode(member.mode)
    written.uid, written.gid, written.uname, written.gname = os.getuid(), os.getgid(), "", ""
    return written


def _leads_inside(root: str, folder: str, link: str) -> bool:
    """Whether a link from this folder below `root` ends within `root`, both as it is and as Python shortens it."""
    return all(_is_inside(root, folder, target) for target in (link, os.path.normpath(link)))


def _is_inside(root: str, *path: str) -> bool:
    """Whether a relative path from `root` ends within `root`, links followed. False for an absolute path."""
    if os.path.isabs(path[-1]):
        return False
    return os.path.commonpath([os.path.realpath(os.path.join(root, *path)), root]) == root


def _file_mode(mode: int) -> int:
    """`mode`, made harmless: the owner may read and write; others may not write, and run it only if the owner may."""
    kept = mode & 0o755
    return (kept if kept & 0o100 else kept & ~0o111) | 0o600
