"""A command with all that it needs to run: where, by which keys, with what input, for how long."""

from __future__ import annotations

import importlib
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from clusterctl_infra.errors import NotReached
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.home import Home
from clusterctl.ssh.broker.place import is_off
from clusterctl.ssh.command import FAN_OUT, Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.dialling import Dialled, dialled
from clusterctl.ssh.fanout.many_files import allow_many_files
from clusterctl.ssh.fanout.sinks import NodeSinks
from clusterctl.ssh.keys.login_keys import LoginKeys, load_login_keys
from clusterctl.ssh.results import NodeResult
from clusterctl.ssh.target import PersonsNode
from clusterctl.system.caller import Caller, this_process


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
    warm_dir: Path | None = None
    """Where connections are kept between commands; None: they are not."""
    kept: Kept | None = None
    """Connections that are there already, in the process that keeps them."""

    def run(
        self, *, sinks: NodeSinks | None = None, on_result: Callable[[NodeResult], None] | None = None
    ) -> dict[int, NodeResult]:
        """Every node's result by its slot. Raises KeyboardInterrupt when the person or the command is gone."""
        if self.kept is not None:
            return self.kept.run(self, sinks, on_result)
        # What a person's configuration says of a machine is not kept with its connection.
        is_own = any(isinstance(node, PersonsNode) for node in self.nodes)
        kept_in = None if sinks is None or is_own else self.warm_dir
        allow_many_files()
        under_way_to = dialled(self.inventory, self.nodes[: self.fan_out or FAN_OUT])
        # Loaded on use, when nodes are dialled already: it takes 20 ms.
        run: _NewLinksRun = importlib.import_module("clusterctl.ssh.broker.new_links_run").run_on_new_links
        return run(self, sinks, on_result, kept_in, under_way_to)


class Kept(Protocol):
    """Runs a command on connections that are there already."""

    def run(
        self, remote: RemoteCommand, sinks: NodeSinks | None, on_result: Callable[[NodeResult], None] | None
    ) -> dict[int, NodeResult]:
        """As `RemoteCommand.run`."""


_NewLinksRun = Callable[
    [RemoteCommand, NodeSinks | None, Callable[[NodeResult], None] | None, Path | None, Dialled], dict[int, NodeResult]
]


def warm_folder(home: Home, environ: Mapping[str, str], *, is_cold: bool) -> Path | None:
    """Where connections are kept between commands; None when the person wants none kept."""
    return None if is_cold or is_off(environ) else home.warm_dir


def usable_keys(inventory: Inventory, home: Home) -> LoginKeys:
    """The keys to log in with. Raises NotReached when this computer has none."""
    return _or_not_reached(inventory, home, this_process())


def keys_of(caller: Caller, inventory: Inventory) -> LoginKeys:
    """The keys that `caller` logs in with. Raises NotReached when there are none."""
    return _or_not_reached(inventory, caller.home, caller)


def _or_not_reached(inventory: Inventory, home: Home, caller: Caller) -> LoginKeys:
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
