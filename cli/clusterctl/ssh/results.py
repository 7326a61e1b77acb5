"""What one command gave on each of many nodes: partial failure is data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.node_set import fold_names
from clusterctl.ssh.failures import NodeFailure


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

    @property
    def is_ok(self) -> bool:
        """The command ran and ended with 0."""
        return self.exit_code == 0


def failure_summary(results: Iterable[NodeResult]) -> str | None:
    """`3 of 4 failed: train-[1-3] exit 1`, the same outcomes folded together; None when all went well."""
    results = tuple(results)
    failed = [result for result in results if not result.is_ok]
    if not failed:
        return None
    outcomes: dict[str, list[str]] = {}
    for result in failed:
        outcomes.setdefault(outcome(result), []).append(result.name)
    told = [f"{fold_names(names)} {what}" for what, names in outcomes.items()]
    head = f"{len(failed)} of {len(results)} failed:"
    return f"{head} {told[0]}" if len(told) == 1 else "\n  ".join([head, *told])


def outcome(result: NodeResult) -> str:
    """`exit 1`, `ended by SIGKILL`, `not reached: timeout`: what can be the same on several nodes."""
    if result.failure is not None:
        if (result.failure.kind, result.failure.phase) == ("timeout", "command"):
            return "ended at --timeout"
        is_reached = result.failure.phase == "command"
        return f"{'lost' if is_reached else 'not reached'}: {_reason(result.failure)}"
    return f"ended by SIG{result.signal}" if result.signal is not None else f"exit {result.exit_code}"


def _reason(failure: NodeFailure) -> str:
    reasons = {
        "refused": "connection refused",
        "timeout": f"timeout ({failure.phase})",
        "host-key": "the host key is not the declared one",
        "auth": "login refused",
        "lost": "the connection broke",
        "unreachable": "no way to its address",
        "proxy": "the proxy command ended",
        "key": "no private key here",
        "protocol": "no SSH server",
    }
    return reasons[failure.kind]
