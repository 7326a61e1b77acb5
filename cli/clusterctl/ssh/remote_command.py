"""A command for nodes with all that it needs to run: where, with which keys, with what input, for how long."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import IO

from clusterctl_infra.errors import NotReached
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.home import Home
from clusterctl.ssh.command import Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.keys.login_keys import LoginKeys, load_login_keys
from clusterctl.system.caller import Caller, this_process


@dataclass(frozen=True, kw_only=True)
class RemoteCommand:
    """A command, where it runs, and how; plain data."""

    inventory: Inventory
    nodes: tuple[InventoryNode, ...]
    command: Command
    keys: LoginKeys
    deadlines: Deadlines
    stdin: IO[bytes] | bytes | None = None
    fan_out: int | None = None
    """Nodes at a time; None: as many as the way to them takes."""
    is_failing_fast: bool = False
    """The first failure ends the command on all nodes."""


def usable_keys(inventory: Inventory, home: Home) -> LoginKeys:
    """The keys to log in with. Raises NotReached when this computer has none."""
    return _loaded_keys(inventory, home, this_process())


def keys_of(caller: Caller, inventory: Inventory) -> LoginKeys:
    """The keys that `caller` logs in with. Raises NotReached when there are none."""
    return _loaded_keys(inventory, caller.home, caller)


def _loaded_keys(inventory: Inventory, home: Home, caller: Caller) -> LoginKeys:
    try:
        return load_login_keys(inventory, home, ssh_dir=caller.ssh_dir, environ=caller.environ)
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
