"""One file to or from one node: gathered beside its target, checked, then put in place at once."""

from __future__ import annotations

import os
import posixpath
from pathlib import Path

from clusterctl.copying.content import Content, content_of
from clusterctl.copying.place import Transfer, partial_name
from clusterctl.copying.progress import Progress
from clusterctl.copying.remote_files import CopyFailed, RemoteFiles


def upload(transfer: Transfer, content: Content, files: RemoteFiles, progress: Progress) -> str:
    """Where the file is now, or that it was there already. Raises CopyFailed, OSError, NodeFailure."""
    target = transfer.remote
    if files.is_folder(target):
        target = files.inside(target, transfer.local.name)
    elif transfer.is_into_folder:
        raise CopyFailed(f"{target} is no folder there")
    if files.size_bytes(target) == content.size_bytes and files.digest(target, content.size_bytes) == content.sha256:
        return f"{target} was there already"
    partial = partial_name(target, content.sha256)
    offset = files.size_bytes(partial) or 0
    if offset > content.size_bytes:
        offset = 0
    progress.expect(content.size_bytes - offset)
    with transfer.local.open("rb") as source:
        files.write_on(partial, offset, source, progress.moved)
    if files.digest(partial, content.size_bytes) != content.sha256:
        files.remove(partial)
        raise CopyFailed(f"{target}: what arrived has another checksum; nothing was replaced, try again")
    files.put_in_place(partial, target, content.mode)
    return target


def download(transfer: Transfer, files: RemoteFiles, progress: Progress) -> str:
    """Where the file is now, or that it was here already. Raises CopyFailed, OSError, NodeFailure."""
    target = _local_target(transfer)
    content = files.content(transfer.remote)
    if target.is_file() and target.stat().st_size == content.size_bytes and content_of(target).sha256 == content.sha256:
        return f"{target} was here already"
    partial = Path(partial_name(str(target), content.sha256))
    offset = partial.stat().st_size if partial.is_file() else 0
    if offset > content.size_bytes:
        offset = 0
    progress.expect(content.size_bytes - offset)
    with partial.open("r+b" if offset else "wb") as sink:
        sink.seek(offset)
        files.read_on(transfer.remote, offset, content.size_bytes, sink, progress.moved)
    if content_of(partial).sha256 != content.sha256:
        partial.unlink()
        raise CopyFailed(f"{transfer.remote}: what arrived has another checksum (was it being written?); try again")
    partial.chmod(content.mode)
    os.replace(partial, target)
    return str(target)


def _local_target(transfer: Transfer) -> Path:
    if transfer.is_into_folder:
        transfer.local.mkdir(parents=True, exist_ok=True)
    name = posixpath.basename(transfer.remote)
    return transfer.local / name if transfer.local.is_dir() else transfer.local
