"""What a person asked for with `clusterctl ssh`, and how it is done."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.home import Home
from clusterctl.node_set import ALL
from clusterctl.options import chosen_rows
from clusterctl.output import Output
from clusterctl.ssh.command import Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.flags import refuse_beside_terminal
from clusterctl.ssh.on_nodes import Shown, run_on_one, run_on_several
from clusterctl.ssh.remote_command import RemoteCommand, input_for, usable_keys, warm_folder

FIRST = "0"


@dataclass(frozen=True, kw_only=True)
class SshRequest:
    """The flags, read."""

    inventory: Inventory
    node: str | None
    """The text of `--node`; None: all for a command, the first one for a login."""
    line: str | None
    """The command; None: a login."""
    shown: Shown
    environment: Mapping[str, str]
    is_sudo: bool
    is_terminal_wanted: bool
    is_failing_fast: bool
    is_cold: bool
    timeout_s: float | None
    connect_timeout_s: float
    fan_out: int | None

    def nodes(self, default: str) -> tuple[InventoryNode, ...]:
        """The nodes meant. Raises UsageError, NothingMatched."""
        return chosen_rows(self.inventory, default if self.node is None else self.node)

    @property
    def is_set_meant(self) -> bool:
        """A set, also one that happens to have a single node: lines carry their node's name."""
        return self.node is None or self.node.strip() == ALL or self.shown is Shown.GATHERED


def carry_out(request: SshRequest, output: Output, *, home: Home, environ: Mapping[str, str]) -> int:
    """The exit code of the command, or of all of them; a login never returns. Raises ClusterctlError."""
    if request.line is None or request.is_terminal_wanted:
        _log_in(request, home)
    nodes = request.nodes(ALL)
    remote = RemoteCommand(
        inventory=request.inventory,
        nodes=nodes,
        command=Command(
            line=request.line,
            environment=request.environment,
            is_sudo=request.is_sudo,
            timeout_s=request.timeout_s,
        ),
        # Of these nodes alone: sshd takes few tries, and a configuration may name a key for each node.
        keys=usable_keys(replace(request.inventory, nodes=nodes), home),
        deadlines=Deadlines.within(request.connect_timeout_s),
        stdin=input_for(None if sys.stdin is None else sys.stdin.buffer, nodes=len(nodes)),
        fan_out=request.fan_out,
        is_failing_fast=request.is_failing_fast,
        warm_dir=warm_folder(home, environ, is_cold=request.is_cold),
    )
    is_for_one = len(nodes) == 1 and not request.is_set_meant
    return (run_on_one if is_for_one else run_on_several)(remote, output, shown=request.shown)


def _log_in(request: SshRequest, home: Home) -> NoReturn:
    given = {
        "--gather": request.shown is Shown.GATHERED,
        "--json": request.shown is Shown.JSON,
        "--env": request.environment,
        "--sudo": request.is_sudo,
        "--timeout": request.timeout_s,
        "--fail-fast": request.is_failing_fast,
    }
    refuse_beside_terminal(given)
    login = importlib.import_module("clusterctl.ssh.one.login")  # loaded on use, as a verb is
    log_in: Callable[..., NoReturn] = login.log_in
    log_in(
        request.inventory,
        request.nodes(FIRST),
        request.line,
        home=home,
        is_terminal_wanted=request.is_terminal_wanted,
        connect_timeout_s=request.connect_timeout_s,
    )
