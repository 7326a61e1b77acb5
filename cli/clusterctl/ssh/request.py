"""What a person asks for with `clusterctl ssh`, as data, and the command on nodes that results from it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import NoReturn

from clusterctl_infra.errors import UsageError
from clusterctl_infra.names import plain_name
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.engine.known_clusters import VARIABLE
from clusterctl.options import chosen_rows
from clusterctl.output import Output
from clusterctl.ssh.command import Command, command_line
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.machines import machines_of
from clusterctl.ssh.remote_command import RemoteCommand, input_for, keys_of
from clusterctl.system.caller import Caller
from clusterctl.text.node_set import ALL
from clusterctl.text.quantities import clock, duration

FIRST = "0"
HINT = "clusterctl ssh --help"
SOON = timedelta(hours=1)
"""In this last stretch before a cluster's end, a login names the command that moves the end."""
WITHOUT_TERMINAL = ("--gather", "--json", "--env", "--sudo", "--timeout", "--fail-fast")


class Shown(Enum):
    """How the output of several nodes is shown."""

    LIVE = "each line after its node's name, as it comes"
    NUMBERED = "each line after its node's number, as it comes"
    GATHERED = "equal outputs once"
    JSON = "one line of JSON per node"


@dataclass(frozen=True, kw_only=True)
class SshRequest:
    """What the flags and words of `clusterctl ssh` ask for."""

    cluster: str | None
    file: Path | None
    """A person's own inventory, as it was typed."""
    node: str | None
    """The text of `--node`; None: all for a command, the first one for a login."""
    line: str | None
    """The command; None: a login."""
    words: tuple[str, ...] = ()
    """The command's words as they were typed, if the first may name a node; empty after `--`."""
    shown: Shown
    environment: Mapping[str, str]
    is_sudo: bool
    is_terminal_wanted: bool
    is_failing_fast: bool
    is_cold: bool
    timeout_s: float | None
    connect_timeout_s: float
    fan_out: int | None

    @property
    def is_login(self) -> bool:
        """Whether a login or a terminal is wanted, which the system's ssh provides."""
        return self.line is None or self.is_terminal_wanted

    @property
    def is_set_meant(self) -> bool:
        """Whether a set of nodes is meant, even if it happens to have one node: lines then carry their node's name."""
        return self.node is None or self.node.strip() == ALL or self.shown is Shown.GATHERED


def with_node_named_first(request: SshRequest, caller: Caller) -> SshRequest:
    """The request with its first word taken as the node that it names, as in `clusterctl ssh train-2`.

    The node's cluster is the one that `--cluster` names. Without that flag any known cluster may be meant, but the
    one that the environment names comes first. Raises UsageError for flags after the node.
    """
    first, *rest = request.words or ("",)
    base, dash, number = first.rpartition("-")
    if request.node is not None or request.file is not None or not (dash and number.isdecimal()):
        return request
    cluster = _cluster_called(base, request.cluster, caller)
    if cluster is None:
        return request
    command = rest[1:] if rest[:1] == ["--"] else rest
    if command[:1] != ["-"] and command and command[0].startswith("-") and rest[:1] != ["--"]:
        raise UsageError(f"{command[0]} after {first} is a part of the command; write flags before the node", hint=HINT)
    return replace(request, cluster=cluster, node=first, line=command_line(command, None), words=())


def _cluster_called(base: str, named: str | None, caller: Caller) -> str | None:
    """The cluster that may be meant and whose nodes are called `base-0` and so on; None when there is none."""
    known = caller.home.cluster_names
    named_here = named or caller.environ.get(VARIABLE)
    matching = [name for name in known if plain_name(name) == base]
    if named_here is not None:
        meant = [name for name in matching if named_here in (name, base)]
        matching = meant if meant or named is not None else matching
    return min(matching, key=len, default=None)


def remote_command(request: SshRequest, caller: Caller) -> RemoteCommand:
    """The command with all that it needs to run; nothing has begun yet. Raises ClusterctlError."""
    inventory = machines_of(caller, request.cluster, request.file)
    nodes = _chosen_nodes(inventory, request.node, ALL)
    return RemoteCommand(
        inventory=inventory,
        nodes=nodes,
        command=Command(
            line=request.line or "",
            environment=request.environment,
            is_sudo=request.is_sudo,
            timeout_s=request.timeout_s,
        ),
        # The keys of these nodes alone: sshd allows few tries, and a configuration may name a key for each node.
        keys=keys_of(caller, replace(inventory, nodes=nodes)),
        deadlines=Deadlines.within(request.connect_timeout_s),
        stdin=input_for(caller.stdin, nodes=len(nodes)),
        fan_out=request.fan_out,
        is_failing_fast=request.is_failing_fast,
    )


def is_for_one(request: SshRequest, remote: RemoteCommand) -> bool:
    """Whether a single node was named: the exit code is then the command's own."""
    return len(remote.nodes) == 1 and not request.is_set_meant


def _chosen_nodes(inventory: Inventory, node: str | None, default: str) -> tuple[InventoryNode, ...]:
    """The nodes that `--node` means. Raises UsageError, NothingMatched."""
    return chosen_rows(inventory, default if node is None else node)


def log_in(request: SshRequest, caller: Caller, output: Output) -> NoReturn:
    """Never returns: this process becomes the system's ssh. Raises ClusterctlError."""
    given = {
        "--gather": request.shown is Shown.GATHERED,
        "--json": request.shown is Shown.JSON,
        "--env": request.environment,
        "--sudo": request.is_sudo,
        "--timeout": request.timeout_s,
        "--fail-fast": request.is_failing_fast,
    }
    refuse_beside_terminal(given)
    login: Callable[..., NoReturn] = importlib.import_module("clusterctl.ssh.single.login").log_in
    inventory = machines_of(caller, request.cluster, request.file)
    if request.line is None and output.can_ask and (line := end_line(inventory, datetime.now(UTC))) is not None:
        output.note(line)
    login(
        inventory,
        _chosen_nodes(inventory, request.node, FIRST),
        request.line,
        home=caller.home,
        is_terminal_wanted=request.is_terminal_wanted,
        deadlines=Deadlines.within(request.connect_timeout_s),
    )


def end_line(inventory: Inventory, now: datetime) -> str | None:
    """`train ends 17:22 UTC, in 4 h 31 m`, for a person who logs in; None after the deadline, and without one."""
    if not inventory.cluster_id or not inventory.deadline or inventory.is_hosts:
        return None
    deadline = datetime.fromisoformat(inventory.deadline)
    if deadline <= now:
        return None
    extend = f"; clusterctl extend 1h --cluster {inventory.cluster} moves that" if deadline - now < SOON else ""
    return f"{inventory.name} ends {clock(deadline, now)}, in {duration(deadline - now)}{extend}"


def refuse_contradiction(*, gather: bool, as_json: bool) -> None:
    """Raises UsageError where two flags answer the same question."""
    if gather and as_json:
        raise UsageError("--gather and --json: give only one of them", hint=HINT)


def refuse_beside_terminal(given: Mapping[str, object]) -> None:
    """Raises UsageError when a flag that is only for a command without a terminal was given; `given`: flag → value."""
    seen = [flag for flag in WITHOUT_TERMINAL if given[flag]]
    if seen:
        *most, last = WITHOUT_TERMINAL
        message = f"{', '.join(most)} and {last} are for a command without a terminal"
        raise UsageError(f"{', '.join(seen)} beside a login or --tty: {message}", hint=HINT)
