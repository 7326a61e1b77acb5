"""Copies one file to or from one node: gathers it beside its target, checks it, then puts it in place in one step."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial as given

from clusterctl.copying.files import Content, CopyFailed, Files, Source
from clusterctl.copying.local_files import LocalFiles
from clusterctl.copying.partial import KeptParts, left_over, partial_name, partial_prefix
from clusterctl.copying.place import Download, Upload
from clusterctl.copying.progress import BYTES_PER_MB, Progress
from clusterctl.system.disk_space import FULL

Give = Callable[[str, int, Callable[[int], None]], None]
"""give(partial, offset, moved): brings the content from `offset` on into the file `partial`, and calls `moved` with the
number of bytes that have arrived since the last call."""


LEAST_BYTES_LOOKED_FOR = 1_000_000
"""The free space is not asked for smaller files: sending one is quicker than asking."""


class WrongContent(CopyFailed):
    """What arrived has a different checksum from what was sent."""


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """A file that has arrived: its path there, and a message for the person."""

    path: str
    message: str


def upload(transfer: Upload, content: Content, files: Files, give: Give, progress: Progress) -> Arrival:
    """Copies a file to a node, unless it is there already. Raises CopyFailed, OSError, NodeFailure."""
    target = target_path(transfer, files)
    if (message := there_already(files, target, content)) is not None:
        return Arrival(path=target, message=message)
    bring(target, content, files, give, progress)
    return Arrival(path=target, message=target)


def download(transfer: Download, source: Source, progress: Progress, kept: KeptParts) -> Arrival:
    """Copies a file from a node, unless it is here already. Raises CopyFailed, OSError, NodeFailure."""
    here = LocalFiles()
    if transfer.is_into_folder:
        transfer.local.mkdir(parents=True, exist_ok=True)
    local = str(transfer.local)
    name = posixpath.basename(transfer.remote)
    target = here.followed(here.inside(local, name) if here.is_folder(local) else local)
    if not here.is_folder(folder := os.path.dirname(target) or "."):
        raise CopyFailed(f"there is no folder {folder} here")
    content = source.content(transfer.remote)
    if (message := there_already(here, target, content)) is not None:
        return Arrival(path=target, message=message)
    try:
        with kept.gathering(partial_name(target, content.sha256)):
            bring(target, content, here, given(source.resume_read, transfer.remote, content.size_bytes), progress)
    except OSError as e:
        if e.errno in FULL:  # the error names no file, and would seem to be about the node's disk
            raise CopyFailed(f"{target} cannot be written here: {str(e.strerror).lower()}") from e
        raise
    return Arrival(path=target, message=target)


def target_path(transfer: Upload, files: Files) -> str:
    """The path that the file gets on the node, links followed. Raises CopyFailed if there is no folder for it, or
    something is there that is no regular file."""
    target = transfer.remote
    if files.is_folder(target):
        return files.followed(files.inside(target, transfer.name))
    if transfer.is_into_folder:
        raise CopyFailed(f"{target} is no folder there")
    target = files.followed(target)
    if not files.is_folder(folder := posixpath.dirname(target) or "."):
        raise CopyFailed(f"{target}: there is no folder {folder} {files.where}")
    return target


def there_already(files: Files, target: str, content: Content) -> str | None:
    """If the target already has this content, gives it the source's permissions and returns a message for the person.

    Returns None if the file has to be copied. Partial files of other contents for this target are removed, so a copy of
    such content that is still running fails. If the target is there, its own partial file is removed, too.
    """
    names = files.beginning_with(partial_prefix(target))
    for path in left_over(names, target, content.sha256):
        files.remove(path)
    if not _has_content(files, target, content):
        return None
    if (own := partial_name(target, content.sha256)) in names:
        files.remove(own)
    is_changed = files.give_mode(target, content.mode)
    message = f"{target} was {files.where} already"
    return f"{message}; its permissions are {content.mode:03o} now" if is_changed else message


def bring(target: str, content: Content, files: Files, give: Give, progress: Progress) -> None:
    """Brings the content to the target, continuing where an earlier try stopped.

    Raises WrongContent, CopyFailed, and whatever `give` raises.
    """
    partial = partial_name(target, content.sha256)
    offset = files.gathered_bytes(partial)
    if offset > content.size_bytes:
        files.remove(partial)
        offset = 0
    _refuse_without_space(files, target, content.size_bytes - offset)
    digest = _gathered(partial, offset, content, files, give, progress)
    if offset and digest not in (None, content.sha256):  # what was there was not the beginning of this content
        files.remove(partial)
        digest = _gathered(partial, 0, content, files, give, progress)
    if digest == content.sha256:
        files.put_in_place(partial, target, content.mode)
    elif digest is not None:
        files.remove(partial)
        message = "the copy has another checksum (did the file change?); nothing was replaced, try again"
        raise WrongContent(f"{target}: {message}")
    elif not _has_content(files, target, content):
        raise CopyFailed(f"{target}: another copy to the same place began meanwhile, and this one was given up")


def _refuse_without_space(files: Files, target: str, size_bytes: int) -> None:
    """Raises CopyFailed if the target's file system has no room for so many bytes: before any is sent."""
    free_bytes = files.free_bytes(target) if size_bytes >= LEAST_BYTES_LOOKED_FOR else None
    if free_bytes is not None and free_bytes < size_bytes:
        left = f"{free_bytes / BYTES_PER_MB:.0f} MB are free {files.where}"
        raise CopyFailed(f"{target}: {left}, and {size_bytes / BYTES_PER_MB:.0f} MB are needed; nothing was replaced")


def _gathered(partial: str, offset: int, content: Content, files: Files, give: Give, progress: Progress) -> str | None:
    """Completes the partial file by `give`, and returns its digest.

    None if the partial file is gone: another command has removed it, or has already put the same content in place.
    """
    try:
        with progress.of_one(content.size_bytes - offset) as moved:
            give(partial, offset, moved)
    except OSError as e:
        if e.errno in FULL:
            files.remove(partial)  # or the partial file itself would keep the disk full
        raise
    return None if files.size_bytes(partial) is None else files.digest(partial, content.size_bytes)


def _has_content(files: Files, target: str, content: Content) -> bool:
    return files.size_bytes(target) == content.size_bytes and files.digest(target, content.size_bytes) == content.sha256
