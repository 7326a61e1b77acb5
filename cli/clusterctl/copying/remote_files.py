"""One node's files, over SFTP, with its own sha256sum for what need not travel."""

from __future__ import annotations

import posixpath
import shlex
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import paramiko

from clusterctl.copying.content import Content
from clusterctl.ssh.one.transport import NodeConnection

CHUNK_BYTES = 32 * 1024
"""As much as paramiko puts in one request."""
SILENT_S = 60.0
"""A node that takes or gives nothing for so long is given up."""
DIGEST_LEAST_S, DIGEST_BYTES_PER_S = 30.0, 20_000_000
"""A slow network file system still reads so much; a fast disk thirty times that."""

PARTIAL_MODE = 0o600
"""Until a file is whole and has its own permissions: it may be a secret."""


class CopyFailed(Exception):
    """One copy that did not come to its end; the message is for the person."""


class RemoteFiles:
    """What a copy needs of a node."""

    def __init__(self, connection: NodeConnection, sftp: paramiko.SFTPClient) -> None:
        self._connection = connection
        self._sftp = sftp
        channel = sftp.get_channel()
        if channel is not None:
            channel.settimeout(SILENT_S)  # else a node that stops in the middle is waited for without an end

    def size_bytes(self, path: str) -> int | None:
        """A file's size; None when there is none."""
        try:
            return self._sftp.stat(path).st_size or 0
        except FileNotFoundError:
            return None

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder of that name."""
        try:
            return stat.S_ISDIR(self._sftp.stat(path).st_mode or 0)
        except FileNotFoundError:
            return False

    def content(self, path: str) -> Content:
        """Size, digest and permissions. Raises FileNotFoundError, CopyFailed."""
        status = self._sftp.stat(path)
        if not stat.S_ISREG(status.st_mode or 0):
            raise CopyFailed(f"{path} is no file")
        size = status.st_size or 0
        return Content(size_bytes=size, sha256=self.digest(path, size), mode=(status.st_mode or 0o644) & 0o777)

    def digest(self, path: str, size_bytes: int) -> str:
        """The SHA-256 that the node reads off its own disk. Raises CopyFailed, NodeFailure."""
        timeout_s = DIGEST_LEAST_S + size_bytes / DIGEST_BYTES_PER_S
        done = self._connection.run(f"sha256sum -- {shlex.quote(path)}", timeout_s=timeout_s)
        word = done.stdout.decode(errors="replace").split(" ")[0].removeprefix("\\")
        if done.exit_code or len(word) != 64:
            said = done.stderr.decode(errors="replace").strip() or f"exit {done.exit_code}"
            raise CopyFailed(f"no checksum on the node: {said}")
        return word

    def write_on(self, path: str, offset: int, moved: Callable[[int], None], *, source: Path) -> None:
        """Writes what the file `source` here has from `offset` on into the file there, from there on."""
        with source.open("rb") as here, self._to_write_on(path) as file:
            here.seek(offset)
            file.set_pipelined(True)
            file.seek(offset)
            while chunk := here.read(CHUNK_BYTES):
                file.write(chunk)
                moved(len(chunk))

    def _to_write_on(self, path: str) -> paramiko.SFTPFile:
        """The file as it is, not cut off; a new one is for nobody else to read yet."""
        try:
            return self._sftp.open(path, "r+b")
        except FileNotFoundError:
            file = self._sftp.open(path, "x+b")
            file.chmod(PARTIAL_MODE)
            return file

    def read_on(self, path: str, offset: int, size_bytes: int, sink: BinaryIO, moved: Callable[[int], None]) -> None:
        """Reads the file from `offset` to its end into `sink`."""
        with self._sftp.open(path, "rb") as file:
            file.seek(offset)
            file.prefetch(size_bytes)
            while chunk := file.read(CHUNK_BYTES):
                sink.write(chunk)
                moved(len(chunk))

    def put_in_place(self, partial: str, target: str, mode: int) -> None:
        """The gathered content becomes the target, at once."""
        self._sftp.chmod(partial, mode)
        self._sftp.posix_rename(partial, target)

    def remove(self, path: str) -> None:
        """Removes a file."""
        self._sftp.remove(path)

    def inside(self, folder: str, name: str) -> str:
        """A name in a folder."""
        return posixpath.join(folder, name)
