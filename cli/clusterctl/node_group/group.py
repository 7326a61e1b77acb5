"""A cluster's nodes as a Fabric group, which runs commands as `clusterctl ssh` does and copies as `clusterctl cp`."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, SupportsIndex  # Any: Fabric has no types of its own

import fabric
from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import InventoryNode
from clusterctl_infra.private_home import secure_home
from fabric import GroupResult

from clusterctl.node_group.connection import ClusterAccess, SlotConnection, program
from clusterctl.node_group.files import TO_EACH, get_from_all, put_on_all
from clusterctl.node_group.options import RunOptions, Verb, run_options
from clusterctl.node_group.results import command_outcome, group_result
from clusterctl.node_group.shown_output import ShownOutput
from clusterctl.options import chosen_rows
from clusterctl.ssh.command import Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.machines import machines_of
from clusterctl.ssh.new_links import NewLinks
from clusterctl.ssh.remote_command import RemoteCommand, input_for
from clusterctl.ssh.results import NodeResult
from clusterctl.text.node_set import ALL, fold_numbers


def nodes(
    cluster: str | None = None,
    *,
    node: str = ALL,
    inventory: str | os.PathLike[str] | None = None,
    connect_timeout_s: float = 15.0,
) -> NodeGroup:
    """The nodes of `cluster`, else of `$CLUSTERCTL_CLUSTER`, else of the only cluster that this computer knows.

    `node`: which nodes, in the form of `--node`, such as `0,2-5`; `inventory`: a file with other machines, as for
    `--inventory`. No connection is opened yet. Raises NothingMatched, UsageError, ConfigError.
    """
    if (changed := secure_home(os.environ)) is not None:
        warnings.warn(changed, stacklevel=2)
    machines = machines_of(program(), cluster, None if inventory is None else Path(inventory))
    access = ClusterAccess(inventory=machines, deadlines=Deadlines.within(connect_timeout_s))
    return NodeGroup(*(SlotConnection(access, row) for row in chosen_rows(machines, node)))


class NodeGroup(fabric.Group):  # type: ignore[misc]  # Fabric has no types
    """Nodes of one cluster.

    `group[3]` is the node in slot 3, even if other slots are not in the group, and `group[0:4]` are those in slots 0 to
    3. `run`, `sudo`, `put` and `get` return a GroupResult, or raise NodesFailed, which is a GroupException.
    """

    def __init__(self, *connections: SlotConnection) -> None:
        super().__init__()
        self.extend(connections)

    def __getitem__(self, slot: SupportsIndex | slice) -> Any:
        """The connection to a slot, or a NodeGroup of a slice of slots. Raises IndexError if the slot is not in it."""
        by_slot = {connection.node.slot: connection for connection in self}
        if isinstance(slot, slice):
            return NodeGroup(
                *(by_slot[each] for each in range(*slot.indices(max(by_slot, default=-1) + 1)) if each in by_slot)
            )
        if slot.__index__() not in by_slot:
            raise IndexError(f"no slot {slot.__index__()} in this group: it has {fold_numbers(by_slot) or 'none'}")
        return by_slot[slot.__index__()]

    def run(self, command: str, **options: Any) -> GroupResult:
        """Runs a line for the login user's shell on all nodes at once.

        Invoke's options `warn`, `hide`, `echo`, `echo_format`, `encoding`, `env`, `timeout`, `in_stream`, `out_stream`
        and `err_stream` hold; others are refused with UsageError before anything runs. Without `in_stream` the command
        has no input. An exit code other than 0 raises NodesFailed unless `warn=True`; a node that was not reached, or a
        command that ran longer than `timeout` seconds, always does. Ctrl-C ends the command on all nodes.
        """
        return self._carried_out(command, options, verb="run")

    def sudo(self, command: str, **options: Any) -> GroupResult:
        """Like `run`, but as root; on the nodes sudo must not ask for a password."""
        return self._carried_out(command, options, verb="sudo")

    def put(
        self, local: str | os.PathLike[str] | IO[Any], remote: str | None = None, preserve_mode: bool = True
    ) -> GroupResult:
        """Copies a file to all nodes as `clusterctl cp` does: it is checked, then put in place in one step.

        Raises NodesFailed.
        """
        _refuse_other_mode("put", preserve_mode)
        members = self._members()
        return group_result(put_on_all(members, local, remote) if members else [])

    def get(self, remote: str, local: str | None = TO_EACH, preserve_mode: bool = True) -> GroupResult:
        """Copies a file from all nodes, each into a folder named by the node's address, unless `local` says otherwise.

        `local` may have `{name}` and `{slot}`, the node's, besides Fabric's own placeholders. Raises NodesFailed.
        """
        _refuse_other_mode("get", preserve_mode)
        members = self._members()
        return group_result(get_from_all(members, remote, local) if members else [])

    def _carried_out(self, command: str, given: dict[str, Any], *, verb: Verb) -> GroupResult:
        options = run_options(command, given, verb=verb)
        members = self._members()
        _refuse_prefixes(members, verb)
        if options.echo_line is not None:
            (options.out_stream or sys.stdout).write(f"{options.echo_line}\n")
        return group_result(_outcomes(members, command, options, verb) if members else [])

    def _members(self) -> list[SlotConnection]:
        """The group's connections, each node once. Raises UsageError for a member of another cluster."""
        members: dict[SlotConnection, None] = {}
        for member in self:
            if not isinstance(member, SlotConnection) or member.cluster.inventory != self._first().inventory:
                raise UsageError(f"{member!r} is no node of the cluster that this group is of")
            members[member] = None
        return list(members)

    def _first(self) -> ClusterAccess:
        first: SlotConnection = next(iter(self))
        return first.cluster


def _outcomes(
    members: Sequence[SlotConnection], command: str, options: RunOptions, verb: Verb
) -> list[tuple[SlotConnection, Any]]:
    """Every node's Result or exception, in the group's order."""
    rows: tuple[InventoryNode, ...] = tuple(member.node for member in members)
    cluster, shown = members[0].cluster, ShownOutput(rows, options)
    with _input(options.in_stream, nodes=len(rows)) as stdin:
        remote = RemoteCommand(
            inventory=cluster.inventory,
            nodes=rows,
            command=Command(
                line=command,
                environment=options.environment,
                is_sudo=verb == "sudo",
                timeout_s=options.timeout_s,
            ),
            keys=cluster.keys(rows),
            deadlines=cluster.deadlines,
            stdin=stdin,
        )

        def finish(result: NodeResult) -> None:
            shown.finish(result.slot)

        results = NewLinks().run(remote, sinks=shown.sinks, on_result=finish)
    return [
        (member, command_outcome(command, results[slot], shown.output(slot), options, member))
        for member, slot in ((member, member.node.slot) for member in members)
    ]


@contextlib.contextmanager
def _input(stream: IO[Any] | None, *, nodes: int) -> Iterator[IO[bytes] | None]:
    """What every node's command reads. A stream without a file, such as a StringIO, is read here to its end first."""
    if stream is None:
        yield None
        return
    try:
        descriptor = stream.fileno()
    except (AttributeError, io.UnsupportedOperation):
        with tempfile.TemporaryFile() as file:
            content = stream.read()
            file.write(content.encode() if isinstance(content, str) else content)
            file.seek(0)
            yield file
        return
    if nodes > 1 and os.isatty(descriptor):
        raise UsageError(f"in_stream is a terminal, and {nodes} nodes cannot read from one")
    yield input_for(stream, nodes=nodes)


def _refuse_prefixes(members: Sequence[SlotConnection], verb: Verb) -> None:
    """Raises UsageError within a connection's `cd()` or `prefix()`: Fabric's groups obey them, and this one cannot."""
    for member in members:
        if member.command_cwds or member.command_prefixes:
            message = f"{verb} on a group of nodes within cd() or prefix() of {member!r}"
            raise UsageError(f"{message}: write it into the command, or run it on the connection")


def _refuse_other_mode(verb: str, preserve_mode: bool) -> None:
    if not preserve_mode:
        raise UsageError(f"{verb}(preserve_mode=False) on a group of nodes: a copy has the permissions of its source")
