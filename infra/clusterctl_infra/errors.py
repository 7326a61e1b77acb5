"""The failures that clusterctl expects, as one tree; a few modules derive narrower ones for their own use.

ClusterctlError                exit 1   something expected went wrong
├── ConfigError                exit 2   a person's file or flag is wrong (carries all problems at once)
├── UsageError                 exit 2   flags that do not go together
├── NothingMatched             exit 3   no such cluster, no such node
├── SomeNodesFailed            exit 4   the command ran; some nodes did not succeed
├── EngineError                exit 1   the Pulumi engine is missing, locked, or ended with an error
├── CloudError                 exit 1   AWS (or the rehearsed region) refused; carries its error code
│   └── NoCapacity             exit 1   AWS has no room now, and nothing that the attempt made is left
│       └── NotBegun           exit 1   a reservation or block is held, and begins later
├── StillBills                 exit 4   the cluster was ended; something that costs money is left (carries the list)
├── HostsUnfit                 exit 1   existing machines cannot be nodes (carries all reasons)
├── CapExceeded                exit 1   a cap says no
├── RemoteError                exit 1   a function raised on a node, or its task ended otherwise (node, rank, traceback)
├── NotReached                 exit 255 the one node asked for could not be reached over SSH
└── RehearsalError             exit 1   the stand-in for AWS cannot do its work on this machine

Each carries one sentence with the value seen and, where there is one, the command that helps.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime


class ClusterctlError(Exception):
    """An expected failure: a sentence for a person, a hint that is a command, an exit code."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConfigError(ClusterctlError):
    """A configuration that cannot be used; `problems` are lines for a person, all of them."""

    exit_code = 2

    def __init__(self, message: str, *, problems: Sequence[str] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)


class UsageError(ClusterctlError):
    """Flags or arguments that do not go together."""

    exit_code = 2


class NothingMatched(ClusterctlError):
    """No cluster or node fits what was asked for."""

    exit_code = 3


class SomeNodesFailed(ClusterctlError):
    """The work was done everywhere it could be; on some nodes it failed."""

    exit_code = 4


class EngineError(ClusterctlError):
    """The Pulumi engine is missing, locked, or ended with an error."""


class CloudError(ClusterctlError):
    """AWS refused; `code` is AWS's own error code, such as InsufficientInstanceCapacity."""

    def __init__(self, message: str, *, code: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code


class NoCapacity(CloudError):
    """AWS has no room for the machines now; nothing is left of the attempt: the same may succeed later."""


class NotBegun(NoCapacity):
    """The capacity is held, and can be used from `begins_at` on; None: AWS does not say when."""

    def __init__(self, message: str, *, code: str, begins_at: datetime | None, hint: str | None = None) -> None:
        super().__init__(message, code=code, hint=hint)
        self.begins_at = begins_at


class StillBills(ClusterctlError):
    """Things that should be gone still cost money, or may: `problems` are lines for a person, one for each thing."""

    exit_code = 4

    def __init__(self, message: str, *, problems: Sequence[str], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)


class HostsUnfit(ClusterctlError):
    """Existing machines cannot be nodes as they are: `problems` are lines for a person, one for each reason."""

    def __init__(self, message: str, *, problems: Sequence[str], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)


class CapExceeded(ClusterctlError):
    """A price, budget or run time cap refuses what was asked for."""


class RemoteError(ClusterctlError):
    """A function raised on a node, or its task ended in another way.

    `node`, `rank` and `type_name` (the exception's class) are None where they are not known; `traceback` is a text.
    """

    def __init__(
        self, message: str, *, node: str | None, rank: int | None, type_name: str | None, traceback: str
    ) -> None:
        super().__init__(message)
        self.node = node
        self.rank = rank
        self.type_name = type_name
        self.traceback = traceback

    def __str__(self) -> str:
        return f"{self.message}\n\n{self.traceback}".rstrip()


class NotReached(ClusterctlError):
    """The one node asked for did not answer over SSH."""

    exit_code = 255


class RehearsalError(ClusterctlError):
    """The stand-in for AWS cannot do its work on this machine."""
