"""The request that hands a command to the process that keeps connections. Imports next to nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

CARRIED = ("HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK")
"""The variables that a command on nodes reads, besides our own."""
_OURS = "CLUSTERCTL_"
_SEPARATOR = b"\0"


class BrokerRequest:
    """A command's words, and where they were typed. No dataclass: to import those would double the time of a start."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        stamp: str,
        folder: str,
        encoding: str,
        is_stdout_terminal: bool,
        is_stderr_terminal: bool,
        environ: Mapping[str, str],
    ) -> None:
        self.argv = tuple(argv)
        self.stamp = stamp
        self.folder = folder
        self.encoding = encoding
        self.is_stdout_terminal = is_stdout_terminal
        self.is_stderr_terminal = is_stderr_terminal
        self.environ = {name: value for name, value in environ.items() if name in CARRIED or name.startswith(_OURS)}

    def to_bytes(self) -> bytes:
        """The request as it goes over the socket; no word and no variable has a zero byte in it (execve(2))."""
        streams = f"{self.is_stdout_terminal:d}{self.is_stderr_terminal:d}"
        variables = [f"{name}={value}" for name, value in self.environ.items()]
        words = [self.stamp, self.folder, self.encoding, streams, str(len(self.argv)), *self.argv, *variables]
        return _SEPARATOR.join(os.fsencode(word) for word in words)


def broker_request_from_bytes(data: bytes) -> BrokerRequest:
    """The request that `to_bytes` was called on. Raises ValueError for bytes that it did not make."""
    stamp, folder, encoding, streams, count, *rest = (os.fsdecode(word) for word in data.split(_SEPARATOR))
    variables = [variable.partition("=") for variable in rest[int(count) :]]
    return BrokerRequest(
        rest[: int(count)],
        stamp=stamp,
        folder=folder,
        encoding=encoding,
        is_stdout_terminal=streams[:1] == "1",
        is_stderr_terminal=streams[1:] == "1",
        environ={name: value for name, _, value in variables},
    )
