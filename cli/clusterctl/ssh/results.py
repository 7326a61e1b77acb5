"""The result of one command on each of many nodes: partial failure is data."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.ssh.failures import NodeFailure
from clusterctl.text.node_set import fold_names


@dataclass(frozen=True, kw_only=True)
class NodeResult:
    """One node's result: an exit code, or the failure that left none."""

    slot: int
    name: str
    exit_code: int | None
    signal: str | None
    failure: NodeFailure | None
    stdout: bytes
    """Empty when the output went to a sink as it came."""
    stderr: bytes
    duration_s: float
    is_truncated: bool = False
    """There was more output than is kept."""

    @property
    def is_ok(self) -> bool:
        """Whether the command ran and ended with 0."""
        return self.exit_code == 0


def failure_summary(results: Iterable[NodeResult]) -> str | None:
    """`3 of 4 failed: train-[1-3] exit 1`, the same outcomes folded together; None when all went well."""
    results = tuple(results)
    failed = [result for result in results if not result.is_ok]
    if not failed:
        return None
    outcomes: dict[str, list[str]] = {}
    for result in sorted(failed, key=_is_stopped):
        outcomes.setdefault(outcome(result), []).append(result.name)
    lines = [f"{fold_names(names)} {what}" for what, names in outcomes.items()]
    head = f"{len(failed)} of {len(results)} failed:"
    return f"{head} {lines[0]}" if len(lines) == 1 else "\n  ".join([head, *lines])


def _is_stopped(result: NodeResult) -> bool:
    """Whether the command ended because another node failed; that other failure is listed first."""
    return result.failure is not None and result.failure.kind == "stopped"


def outcome(result: NodeResult) -> str:
    """`exit 1`, `ended by SIGKILL`, `not reached: timeout`: the result in words that several nodes can share."""
    if result.failure is not None:
        if (result.failure.kind, result.failure.phase) == ("timeout", "command"):
            return "ended at --timeout"
        if result.failure.kind == "stopped":
            return f"{'ended by' if result.failure.phase == 'command' else 'not run because of'} --fail-fast"
        is_reached = result.failure.phase == "command"
        return f"{'lost' if is_reached else 'not reached'}: {_reason(result.failure)}"
    return f"ended by SIG{result.signal}" if result.signal is not None else f"exit {result.exit_code}"


def signal_exit_code(name: str) -> int:
    """128 + the signal's number, as in a shell; 255 for a signal that this system does not know."""
    number = getattr(signal, f"SIG{name}", None)
    return 255 if number is None else 128 + int(number)


def _reason(failure: NodeFailure) -> str:
    reasons = {
        "refused": "connection refused",
        "timeout": f"timeout ({failure.phase})",
        "host-key": "the host key is not the declared one",
        "auth": "login refused",
        "lost": "the connection broke",
        "unreachable": "no way to its address",
        "proxy": "no way to it",
        "session": "no session was opened",
        "stopped": "--fail-fast ended it",
        "key": "no private key here",
        "ended": "it ended",
        "protocol": "no SSH server",
    }
    return reasons[failure.kind]
