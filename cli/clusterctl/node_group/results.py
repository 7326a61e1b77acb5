"""Nodes' results in Fabric's form: a Result or an exception for each connection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any  # Fabric and Invoke have no types of their own

from clusterctl_infra.errors import ClusterctlError
from fabric import GroupResult, Result
from fabric.exceptions import GroupException
from invoke.exceptions import CommandTimedOut, UnexpectedExit

from clusterctl.node_group.connection import SlotConnection
from clusterctl.node_group.options import RunOptions
from clusterctl.ssh.failure_hints import not_reached
from clusterctl.ssh.results import NodeResult
from clusterctl.text.node_set import fold_names

NO_EXIT_CODE = -1
"""paramiko's, and so Fabric's, exit code of a command that was ended before it reported one."""


class NodesFailed(GroupException):  # type: ignore[misc]  # Fabric has no types
    """Fabric's exception with a message for a person, `1 of 4 failed: train-2 exit 1`; `.result` has all results."""

    def __str__(self) -> str:
        outcomes: dict[str, list[str]] = {}
        for connection, value in self.result.items():
            if isinstance(value, BaseException):
                outcomes.setdefault(_outcome(value), []).append(connection.node.name)
        lines = [f"{fold_names(names)} {what}" for what, names in outcomes.items()]
        head = f"{sum(map(len, outcomes.values()))} of {len(self.result)} failed:"
        return f"{head} {lines[0]}" if len(lines) == 1 else "\n  ".join([head, *lines])


def group_result(values: Iterable[tuple[SlotConnection, Any]]) -> GroupResult:
    """Connection → its result. Raises NodesFailed if one of them is an exception."""
    result = GroupResult(values)
    if result.failed:
        raise NodesFailed(result)
    return result


def command_outcome(
    command: str, node_result: NodeResult, output: Mapping[str, bytes], options: RunOptions, connection: SlotConnection
) -> Any:
    """Fabric's Result of a node's command, or the exception in its place. `output`: `stdout` and `stderr` as bytes."""
    failure = node_result.failure
    result = Result(
        command=command,
        stdout=output["stdout"].decode(options.encoding, "replace"),
        stderr=output["stderr"].decode(options.encoding, "replace"),
        encoding=options.encoding,
        env=dict(options.environment),
        hide=options.hidden,
        exited=NO_EXIT_CODE if node_result.exit_code is None else node_result.exit_code,
        connection=connection,
    )
    if failure is None:
        return result if result.ok or options.warn else UnexpectedExit(result)
    if (failure.kind, failure.phase) == ("timeout", "command"):
        assert options.timeout_s is not None
        return CommandTimedOut(result, timeout=options.timeout_s)  # type: ignore[arg-type]  # parts of seconds do, too
    error = not_reached(failure, connection.cluster.inventory, connection.node)
    error.__cause__ = failure
    return error


def _outcome(error: BaseException) -> str:
    """The failure in words without the node's name, so that nodes with the same one can be listed together."""
    if isinstance(error, CommandTimedOut):
        return f"ended after {error.timeout:g} s"
    if isinstance(error, UnexpectedExit):
        return f"exit {error.result.exited}"
    if isinstance(error, ClusterctlError):
        return f"({error.message})"
    return f"({error!r})"
