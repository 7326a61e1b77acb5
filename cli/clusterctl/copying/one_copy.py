"""One file to or from one node: gathered beside its target, checked, then put in place at once."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable
from pathlib import Path

from clusterctl.copying.content import Content, content_of
from clusterctl.copying.place import Download, Upload, partial_name
from clusterctl.copying.progress import Progress
from clusterctl.copying.remote_files import PARTIAL_MODE, CopyFailed, RemoteFiles

Give = Callable[[str, int, Callable[[int], None]], None]
"""Brings the content from this offset on into the file of this name on the node; tells how many bytes have moved."""


class WrongContent(CopyFailed):
    """What arrived is not what was sent."""


def upload(transfer: Upload, content: Content, files: RemoteFiles, give: Give, progress: Progress) -> str:
    """Where the file is now, or that it was there already. Raises CopyFailed, OSError, NodeFailure."""
    target = target_path(transfer, files)
    if has_content(files, target, content):
        return f"{target} was there already"
    bring(target, content, files, give, progress)
    return target


def target_path(transfer: Upload, files: RemoteFiles) -> str:
    """The file's whole name on the node. Raises CopyFailed where a folder was asked for and there is none."""
    target = transfer.remote
    if files.is_folder(target):
        return files.inside(target, transfer.name)
    if transfer.is_into_folder:
        raise CopyFailed(f"{target} is no folder there")
    return target


def has_content(files: RemoteFiles, target: str, content: Content) -> bool:
    """Whether the file is there and the same."""
    return files.size_bytes(target) == content.size_bytes and files.digest(target, content.size_bytes) == content.sha256


def bring(target: str, content: Content, files: RemoteFiles, give: Give, progress: Progress) -> None:
    """Goes on where an earlier try stopped. Raises WrongContent, and whatever `give` raises."""
    partial = partial_name(target, content.sha256)
    offset = files.size_bytes(partial) or 0
    if offset > content.size_bytes:
        files.remove(partial)
        offset = 0
    with progress.of_one(content.size_bytes - offset) as moved:
        give(partial, offset, moved)
    if files.size_bytes(partial) is None and has_content(files, target, content):
        return  # another command with the same file was quicker, and has put both commands' work in place
    if files.digest(partial, content.size_bytes) != content.sha256:
        files.remove(partial)
        raise WrongContent(f"{target}: what arrived has another checksum; nothing was replaced, try again")
    files.put_in_place(partial, target, content.mode)


def download(transfer: Download, files: RemoteFiles, progress: Progress) -> str:
    """Where the file is now, or that it was here already. Raises CopyFailed, OSError, NodeFailure."""
    target = _local_target(transfer)
    content = files.content(transfer.remote)
    if target.is_file() and target.stat().st_size == content.size_bytes and content_of(target).sha256 == content.sha256:
        return f"{target} was here already"
    partial = Path(partial_name(str(target), content.sha256))
    offset = partial.stat().st_size if partial.is_file() else 0
    if offset > content.size_bytes:
        partial.unlink()
        offset = 0
    with progress.of_one(content.size_bytes - offset) as moved, open(partial, "r+b", opener=_made_private) as sink:
        sink.seek(offset)
        files.read_on(transfer.remote, offset, content.size_bytes, sink, moved)
    if content_of(partial).sha256 != content.sha256:
        partial.unlink()
        raise CopyFailed(f"{transfer.remote}: what arrived has another checksum (was it being written?); try again")
    partial.chmod(content.mode)
    os.replace(partial, target)
    return str(target)


def _made_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT, PARTIAL_MODE)


def _local_target(transfer: Download) -> Path:
    if transfer.is_into_folder:
        transfer.local.mkdir(parents=True, exist_ok=True)
    name = posixpath.basename(transfer.remote)
    return transfer.local / name if transfer.local.is_dir() else transfer.local
