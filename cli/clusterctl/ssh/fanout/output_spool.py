"""The output of many nodes, kept until it is shown: a small one in memory, a larger one on disk, each with a limit."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Self

from clusterctl_infra.outputs import InventoryNode

from clusterctl.ssh.fanout.scratch import named_folder
from clusterctl.ssh.fanout.sinks import NodeSinks
from clusterctl.system.many_files import allow_many_files

MOST_BYTES = 16 * 1024 * 1024
"""How much is kept of each node's stdout and of its stderr."""
IN_MEMORY_BYTES = 16 * 1024


@dataclass
class Spooled:
    """The output of one stream of one node."""

    _file: IO[bytes]
    length_bytes: int = 0
    is_truncated: bool = False
    _digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def add(self, chunk: bytes) -> None:
        """Keeps what fits. Raises OSError with the folder's name where the disk is full."""
        room = MOST_BYTES - self.length_bytes
        self.is_truncated = self.is_truncated or len(chunk) > room
        chunk = chunk[:room]
        with named_folder():
            self._file.write(chunk)
        self._digest.update(chunk)
        self.length_bytes += len(chunk)

    def read(self) -> bytes:
        """All that is kept. Raises OSError as `add`."""
        with named_folder():
            self._file.seek(0)
            return self._file.read()

    @property
    def fingerprint(self) -> bytes:
        """A hash of the output: equal outputs have equal ones."""
        return self._digest.digest() + bytes([self.is_truncated])


class OutputSpool:
    """A place for each node's stdout and stderr; use it as a context manager."""

    def __init__(self, nodes: tuple[InventoryNode, ...]) -> None:
        allow_many_files()
        self._files = ExitStack()
        self.stdout = {node.slot: self._spooled() for node in nodes}
        self.stderr = {node.slot: self._spooled() for node in nodes}

    @property
    def sinks(self) -> NodeSinks:
        """Where a fan-out puts its output."""
        return NodeSinks(
            stdout=lambda node, chunk: self.stdout[node.slot].add(chunk),
            stderr=lambda node, chunk: self.stderr[node.slot].add(chunk),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):  # a full disk, which was reported when something was to be kept
            self._files.close()

    def _spooled(self) -> Spooled:
        return Spooled(self._files.enter_context(tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)))
