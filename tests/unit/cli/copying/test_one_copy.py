"""One file on its way to a node."""

from __future__ import annotations

import hashlib

import pytest
from clusterctl.copying.content import Content
from clusterctl.copying.one_copy import WrongContent, bring
from clusterctl.copying.place import partial_name
from clusterctl.copying.progress import Progress
from clusterctl.copying.remote_files import RemoteFiles

TEXT = b"weights"
CONTENT = Content(size_bytes=len(TEXT), sha256=hashlib.sha256(TEXT).hexdigest(), mode=0o644)
TARGET = "/scratch/w.bin"
PARTIAL = partial_name(TARGET, CONTENT.sha256)


class FilesInMemory(RemoteFiles):
    """A node's files by their names."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files

    def size_bytes(self, path: str) -> int | None:
        return len(self.files[path]) if path in self.files else None

    def digest(self, path: str, size_bytes: int) -> str:
        return hashlib.sha256(self.files[path]).hexdigest()

    def put_in_place(self, partial: str, target: str, mode: int) -> None:
        self.files[target] = self.files.pop(partial)

    def remove(self, path: str) -> None:
        del self.files[path]


def test_what_another_command_has_put_in_place_meanwhile_is_there() -> None:
    files = FilesInMemory({TARGET: b"old"})
    bring(TARGET, CONTENT, files, lambda *_: files.files.update({TARGET: TEXT}), Progress(1))
    assert files.files == {TARGET: TEXT}


def test_what_is_longer_than_the_file_is_no_beginning_of_it() -> None:
    files = FilesInMemory({PARTIAL: b"something longer"})
    offsets: list[int] = []

    def give(partial: str, offset: int, _: object) -> None:
        offsets.append(offset)
        before = files.files.get(partial, b"")
        files.files[partial] = before[:offset] + TEXT + before[len(TEXT) :]

    bring(TARGET, CONTENT, files, give, Progress(1))
    assert (offsets, files.files) == ([0], {TARGET: TEXT})


def test_wrong_content_replaces_nothing_and_is_no_beginning_of_the_next_try() -> None:
    files = FilesInMemory({TARGET: b"old"})
    with pytest.raises(WrongContent, match="another checksum"):
        bring(TARGET, CONTENT, files, lambda *_: files.files.update({PARTIAL: b"wrong.."}), Progress(1))
    assert files.files == {TARGET: b"old"}
