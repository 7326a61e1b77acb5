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
    "refused": "nothing listens on the port",
    "timeout": "a phase took too long; in the phase `command`: the command was ended at `--timeout`",
    "host-key": "the machine has another host key than the declared one",
    "auth": "the machine refuses the login",
    "lost": "the connection was lost",
    "unreachable": "no route to the address, or no address",
    "proxy": "the proxy command ended",
    "session": "after the login the machine opens no channel, or starts no command",
    "stopped": "not run, or ended early, because another node failed or somebody stopped it",
    "key": "no usable private key on this computer",
    "ended": "a program that should keep running there ended (`top`)",
    "protocol": "what answers does not speak SSH",
}
Phase = Literal["connect", "greeting", "key exchange", "login", "session", "command"]


class NodeFailure(Exception):
    """Why a node gave no result; partial failure is data, so this is no ClusterctlError."""

    def __init__(self, kind: FailureKind, message: str, *, phase: Phase = "connect") -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message
        self.phase: Phase = phase

    def message_under(self, name: str) -> str:
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
