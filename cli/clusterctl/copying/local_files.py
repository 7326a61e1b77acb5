"""This computer's files."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from clusterctl.copying.files import CopyFailed, Files, content_of


class LocalFiles(Files):
    """What a copy to here needs."""

    where = "here"

    def size_bytes(self, path: str) -> int | None:
        try:
            return os.stat(path).st_size
        except FileNotFoundError:
            return None

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def followed(self, path: str) -> str:
        meant = os.path.realpath(path) if os.path.islink(path) else path
        if os.path.lexists(meant) and not os.path.isfile(meant):
            raise CopyFailed(f"{meant} is here already, and is no file")
        return meant

    def inside(self, folder: str, name: str) -> str:
        return os.path.join(folder, name)

    def beginning_with(self, prefix: str) -> Sequence[str]:
        folder, beginning = os.path.split(prefix)
        with contextlib.suppress(FileNotFoundError), os.scandir(folder or ".") as entries:
            return [os.path.join(folder, entry.name) for entry in entries if entry.name.startswith(beginning)]
        return []

    def room_bytes(self, path: str) -> int | None:
        return shutil.disk_usage(os.path.dirname(path) or ".").free

    def digest(self, path: str, size_bytes: int) -> str:
        return content_of(Path(path)).sha256

    def give_mode(self, path: str, mode: int) -> bool:
        if os.stat(path).st_mode & 0o777 == mode:
            return False
        try:
            os.chmod(path, mode)
        except OSError as e:
            told = f"{path} was here already, but its permissions cannot be made {mode:03o}: {e.strerror}"
            raise CopyFailed(told) from e
        return True

    def put_in_place(self, partial: str, target: str, mode: int) -> None:
        os.chmod(partial, mode)
        os.replace(partial, target)

    def remove(self, path: str) -> None:
        os.unlink(path)
