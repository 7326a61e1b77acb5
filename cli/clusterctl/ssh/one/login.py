"""A login, or a command with a terminal, on one node: the system's ssh takes over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.home import Home
from clusterctl.process import become
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.keys.login_keys import files_for_ssh
from clusterctl.ssh.keys.openssh_files import login_key_file, write_known_hosts
from clusterctl.ssh.one.host_check import check_host
from clusterctl.ssh.one.system_ssh import login_argv
from clusterctl.ssh.reached import not_reached
from clusterctl.ssh.target import target_of
from clusterctl.ssh.way_in import missing_programs


def log_in(
    inventory: Inventory,
    nodes: Sequence[InventoryNode],
    command: str | None,
    *,
    home: Home,
    is_terminal_wanted: bool,
    connect_timeout_s: float,
) -> NoReturn:
    """Never returns: this process becomes ssh. Raises UsageError for several nodes, NotReached for one that is not
    there or is not the declared one."""
    if len(nodes) != 1:
        what = "a terminal" if is_terminal_wanted else "a login"
        raise UsageError(f"{what} is for one node, and --node names {len(nodes)}", hint="clusterctl ssh --help")
    (node,) = nodes
    try:
        target = target_of(inventory, node)
        if target.proxy_argv is not None and (missing := missing_programs(target.proxy_argv)) is not None:
            raise NodeFailure("proxy", missing)
        check_host(target, Deadlines.within(connect_timeout_s))
    except NodeFailure as e:
        raise not_reached(e, inventory, node) from e
    argv = login_argv(
        target,
        key_file=login_key_file(inventory, home),
        own_files=files_for_ssh(replace(inventory, nodes=(node,)), home, Path.home() / ".ssh"),
        known_hosts=write_known_hosts(inventory, home),
        command=command,
        is_terminal_wanted=is_terminal_wanted,
        connect_timeout_s=connect_timeout_s,
    )
    become(argv)
