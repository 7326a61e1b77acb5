"""Why a node could not be reached, or was lost: one type, told apart by `kind`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

FailureKind = Literal[
    "refused",
    "timeout",
    "host-key",
    "auth",
    "lost",
    "unreachable",
    "proxy",
    "session",
    "stopped",
    "key",
    "ended",
    "protocol",
]
FAILURE_KINDS: Mapping[FailureKind, str] = {
    "refused": "nobody listens there",
    "timeout": "a phase did not end in its time; in the phase `command`: ended at `--timeout`",
    "host-key": "the machine is not the one that was declared",
    "auth": "the machine does not want us",
    "lost": "it was there, and then it was not",
    "unreachable": "no way to the address, or no address",
    "proxy": "the command that makes the way ended",
    "session": "it lets us in and then opens no channel, or starts no command",
    "stopped": "not run, or ended half way: another node's failure, or the person's wish",
    "key": "no usable private key on this computer",
    "ended": "what was to run on and on there ended by itself (`top`)",
    "protocol": "what answers does not speak SSH as we do",
}
Phase = Literal["connect", "greeting", "key exchange", "login", "session", "command"]


class NodeFailure(Exception):
    """A node without a result; partial failure is data, so this is no ClusterctlError."""

    def __init__(self, kind: FailureKind, message: str, *, phase: Phase = "connect") -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message
        self.phase: Phase = phase

    def told_under(self, name: str) -> str:
        """The message for a line that begins with the node's name: `[train-0] has no machine yet`."""
        return self.message.removeprefix(f"{name}: ").removeprefix(f"{name} ")


def node_failure_json(name: str, *, slot: int, rank: int, failure: NodeFailure | None) -> dict[str, object]:
    """The node, and `error_class`, `error_phase` and `message`, which are null when nothing failed."""
    return {
        "node": name,
        "slot": slot,
        "rank": rank,
        "error_class": None if failure is None else failure.kind,
        "error_phase": None if failure is None else failure.phase,
        "message": None if failure is None else failure.message,
    }
