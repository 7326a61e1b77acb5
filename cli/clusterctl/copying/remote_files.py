"""One node's files, over SFTP; the node's own sha256sum checks them, so that nothing is read back over the network."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import posixpath
import shlex
import stat
from collections.abc import Callable
from pathlib import Path

import paramiko

from clusterctl.copying.files import Content, CopyFailed, Files
from clusterctl.copying.local_files import PARTIAL_MODE, made_as_own
from clusterctl.ssh.single.transport import NodeConnection

CHUNK_BYTES = 32 * 1024
"""The size of one SFTP request of paramiko."""
SILENT_S = 60.0
"""A node that takes or sends nothing for this long is given up."""
DIGEST_LEAST_S, DIGEST_BYTES_PER_S = 30.0, 20_000_000
"""They limit a digest: even a slow network file system reads as fast as this, and a fast disk thirty times faster."""

LOOK_S = 60.0
AHEAD_BYTES = 64 * 1024 * 1024
"""How much is requested ahead of reading it; as much may wait in memory."""
SHA256_OF_NOTHING = hashlib.sha256().hexdigest()
NO_WORDS = "Failure"
"""SFTP's message for a full disk, a used-up quota, and all else that it has no code for (OpenSSH's sftp-server.c)."""


class RemoteFiles(Files):
    """The operations on a node's files that a copy to or from the node needs."""

    where = "there"

    def __init__(self, connection: NodeConnection, sftp: paramiko.SFTPClient) -> None:
        self._connection = connection
        self._sftp = sftp
        channel = sftp.get_channel()
        if channel is not None:
            channel.settimeout(SILENT_S)  # without it, a node that stops answering would be waited for for ever

    def size_bytes(self, path: str) -> int | None:
        """A file's size; None if there is no such file."""
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

    def followed(self, path: str) -> str:
        """The path with links followed; it need not exist. Raises CopyFailed if anything but a file is there."""
        try:
            status = self._sftp.lstat(path)
            if stat.S_ISLNK(status.st_mode or 0):
                path = self._sftp.normalize(path)
                status = self._sftp.stat(path)
        except FileNotFoundError:
            return path
        if not stat.S_ISREG(status.st_mode or 0):
            raise CopyFailed(f"{path} is there already and is not a regular file")
        return path

    def content(self, path: str) -> Content:
        """Size, digest and permissions of a file; if it grows meanwhile, those of its first size.

        Raises FileNotFoundError, and CopyFailed for what is no regular file, or reports no size.
        """
        status = self._sftp.stat(path)
        if stat.S_ISDIR(status.st_mode or 0):
            raise CopyFailed(f"{path} is a folder, and cp without -r copies files")
        if not stat.S_ISREG(status.st_mode or 0):
            raise CopyFailed(f"{path} is no file")
        size = status.st_size or 0
        digest = self.digest(path, size)
        if (self._sftp.stat(path).st_size or 0) > size:
            digest = self._digest_by(f"head -c {size} -- {shlex.quote(path)} | sha256sum", size)
        if size == 0 and digest != SHA256_OF_NOTHING:
            cat = shlex.join(["clusterctl", "ssh", "--node", self._connection.target.name, "cat", path])
            raise CopyFailed(f"{path} has content but reports size 0, as files of /proc do; to read it: {cat}")
        return Content(size_bytes=size, sha256=digest, mode=(status.st_mode or 0o644) & 0o777)

    def digest(self, path: str, size_bytes: int) -> str:
        """The file's SHA-256 in hex, computed on the node. Raises CopyFailed, NodeFailure."""
        return self._digest_by(f"sha256sum -- {shlex.quote(path)}", size_bytes)

    def _digest_by(self, line: str, size_bytes: int) -> str:
        timeout_s = DIGEST_LEAST_S + size_bytes / DIGEST_BYTES_PER_S
        done = self._connection.run(line, timeout_s=timeout_s)
        word = done.stdout.decode(errors="replace").split(" ")[0].removeprefix("\\")
        if done.exit_code != 0 or len(word) != 64:
            reason = done.stderr.decode(errors="replace").strip() or done.ending
            raise CopyFailed(f"no checksum on the node: {reason}")
        return word

    def resume_write(
        self, path: str, offset: int, moved: Callable[[int], None], *, source: Path, size_bytes: int
    ) -> None:
        """Copies the bytes of `source` here, from `offset` to `size_bytes`, to the same place in the file on the node.

        Raises OSError, CopyFailed.
        """
        wanted_bytes = offset
        with source.open("rb") as here, self._opened_to_write(path, is_new=offset == 0) as file:
            here.seek(offset)
            file.set_pipelined(True)
            file.seek(offset)
            try:
                while chunk := here.read(min(CHUNK_BYTES, size_bytes - wanted_bytes)):
                    wanted_bytes += len(chunk)
                    file.write(chunk)
                    moved(len(chunk))
            except OSError as e:
                if str(e) != NO_WORDS:
                    raise
        # Writes are pipelined: one that failed may not have raised anything, so the size is checked.
        came_bytes = self.size_bytes(path)
        if came_bytes is not None and came_bytes < wanted_bytes:
            raise OSError(errno.ENOSPC, f"only {came_bytes} bytes of it could be written there: is the disk full?")

    def _opened_to_write(self, path: str, *, is_new: bool) -> paramiko.SFTPFile:
        """The partial file, opened for writing without truncating it; a new one is readable by nobody else."""
        if is_new:  # probably: each try is a round trip, so the likely one comes first
            with contextlib.suppress(OSError):
                return self._created(path)
        try:
            return self._sftp.open(path, "r+b")
        except FileNotFoundError:
            pass
        try:
            return self._created(path)
        except OSError as e:
            if str(e) != NO_WORDS or not (why := self._why_not_created(path)):
                raise
            folder = posixpath.dirname(path) or "the home there"
            raise CopyFailed(f"{folder} cannot be written: {why}") from e

    def gathered_bytes(self, path: str) -> int:
        """The size of a partial file, 0 if there is none. Raises CopyFailed if it is a link, or no regular file.

        SFTP always follows links when it opens a file, so somebody who may write into the folder could still put a link
        there between this look and the opening (SFTP 3, draft-ietf-secsh-filexfer-02).
        """
        try:
            status = self._sftp.lstat(path)
        except FileNotFoundError:
            return 0
        if not stat.S_ISREG(status.st_mode or 0):
            raise CopyFailed(
                f"{path} is in the way there and is not a regular file; somebody else may have put it there"
            )
        return status.st_size or 0

    def _created(self, path: str) -> paramiko.SFTPFile:
        file = self._sftp.open(path, "x+b")
        file.chmod(PARTIAL_MODE)
        return file

    def _why_not_created(self, path: str) -> str | None:
        """Why the file cannot be made, in the words of the node's shell, such as `Read-only file system`.

        None if it can be made now.
        """
        quoted = shlex.quote(path)
        done = self._connection.run(f"LC_ALL=C touch -- {quoted} && rm -f -- {quoted}", timeout_s=LOOK_S)
        return done.stderr.decode(errors="replace").strip().rpartition(": ")[2] if done.exit_code != 0 else None

    def resume_read(self, path: str, size_bytes: int, sink: str, offset: int, moved: Callable[[int], None]) -> None:
        """Copies the file's bytes from `offset` to `size_bytes` into the file `sink` here, at the same place."""
        with self._sftp.open(path, "rb") as file, open(sink, "r+b", opener=made_as_own) as here:
            here.seek(offset)
            file.seek(offset)
            for asked_to in range(offset, size_bytes, AHEAD_BYTES):
                ahead_to = min(asked_to + AHEAD_BYTES, size_bytes)
                file.prefetch(ahead_to)
                while chunk := file.read(min(CHUNK_BYTES, ahead_to - here.tell())):
                    here.write(chunk)
                    moved(len(chunk))

    def put_in_place(self, partial: str, target: str, mode: int) -> None:
        """Gives the partial file its permissions and renames it to the target, in one step."""
        self._sftp.chmod(partial, mode)
        self._sftp.posix_rename(partial, target)

    def give_mode(self, path: str, mode: int) -> bool:
        """Sets the permission bits; False if they were set already. Raises CopyFailed if they cannot be set."""
        if (self._sftp.stat(path).st_mode or 0) & 0o777 == mode:
            return False
        try:
            self._sftp.chmod(path, mode)
        except OSError as e:
            raise CopyFailed(f"{path} was there already, but its permissions cannot be made {mode:03o}: {e}") from e
        return True

    def beginning_with(self, prefix: str) -> list[str]:
        """The paths that begin with `prefix`. The node's shell looks for them, as the folder may have too many names to
        send."""
        done = self._connection.run(f"printf '%s\\0' {shlex.quote(prefix)}*", timeout_s=LOOK_S)
        return [name for name in done.stdout.decode(errors="surrogateescape").split("\0") if name.startswith(prefix)]

    def free_bytes(self, path: str) -> int | None:
        """The free space on the file system of this file's folder; None if that is not known."""
        line = f"stat -f -c '%b %a %S' -- {shlex.quote(posixpath.dirname(path) or '.')}"
        blocks = self._connection.run(line, timeout_s=LOOK_S).stdout.split()
        if len(blocks) != 3 or not all(word.isdigit() for word in blocks) or blocks[0] == b"0":
            return None
        return int(blocks[1]) * int(blocks[2])

    def remove(self, path: str) -> None:
        """Removes a file."""
        self._sftp.remove(path)

    def inside(self, folder: str, name: str) -> str:
        """The path of a name in a folder."""
        return posixpath.join(folder, name)
