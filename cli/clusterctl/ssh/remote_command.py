"""A command with all that it needs to run: where, by which keys, with what input, for how long."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from clusterctl_infra.errors import NotReached
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.home import Home
from clusterctl.ssh.command_run import Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fan_out import NodeSinks, run_on_nodes
from clusterctl.ssh.login_keys import LoginKeys, load_login_keys
from clusterctl.ssh.results import NodeResult


@dataclass(frozen=True, kw_only=True)
class RemoteCommand:
    """A command, where it runs, and how."""

    inventory: Inventory
    nodes: tuple[InventoryNode, ...]
    command: Command
    keys: LoginKeys
    deadlines: Deadlines
    stdin: IO[bytes] | None = None
    fan_out: int | None = None
    is_failing_fast: bool = False

    def run(
        self, *, sinks: NodeSinks | None = None, on_result: Callable[[NodeResult], None] | None = None
    ) -> dict[int, NodeResult]:
        """Every node's result by its slot."""
        return run_on_nodes(
            self.inventory,
            self.nodes,
            self.command,
            keys=self.keys,
            deadlines=self.deadlines,
            stdin=self.stdin,
            sinks=sinks,
            on_result=on_result,
            fan_out=self.fan_out,
            is_failing_fast=self.is_failing_fast,
        )


def usable_keys(inventory: Inventory, home: Home) -> LoginKeys:
    """The keys to log in with. Raises NotReached when this computer has none."""
    try:
        return load_login_keys(inventory, home, ssh_dir=Path.home() / ".ssh")
    except NodeFailure as e:
        raise NotReached(e.message) from e


def input_for(stdin: IO[bytes] | None, *, nodes: int) -> IO[bytes] | None:
    """What the command reads: a pipe or a file goes to every node, a terminal only to a single one."""
    if stdin is None:
        return None
    try:
        mode = os.fstat(stdin.fileno()).st_mode
    except OSError:
        return None  # closed before the start
    if stat.S_ISCHR(mode):
        return stdin if nodes == 1 and os.isatty(stdin.fileno()) else None
    return stdin
