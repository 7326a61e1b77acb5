"""A login, or a command with a terminal, on one node: the system's ssh takes over.

OpenSSH and rsync say in their own words what is wrong, and know no `clusterctl replace`. So before another program than
ours connects, we check whether the node shows the declared host key.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.home import Home
from clusterctl.ssh.deadlines import Clock, Deadlines
from clusterctl.ssh.failure_hints import not_reached
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.event_loop import EventLoop, Task, Waiting
from clusterctl.ssh.fanout.libssh2 import load
from clusterctl.ssh.fanout.reaching import reach_host
from clusterctl.ssh.keys.login_keys import identities_for_ssh, load_login_keys
from clusterctl.ssh.keys.openssh_files import login_key_file, write_known_hosts
from clusterctl.ssh.shared_session_argv import own_session
from clusterctl.ssh.single.system_ssh import login_argv
from clusterctl.ssh.single.terminal_guard import TerminalGuard, marked
from clusterctl.ssh.target import Target, target_of
from clusterctl.ssh.way_in import missing_programs, uses_session_manager
from clusterctl.system.other_programs import become


def log_in(
    inventory: Inventory,
    nodes: Sequence[InventoryNode],
    command: str | None,
    *,
    home: Home,
    is_terminal_wanted: bool,
    deadlines: Deadlines,
) -> NoReturn:
    """Never returns: this process becomes ssh. Raises UsageError for several nodes, NotReached for one that is not
    there or is not the declared one."""
    if len(nodes) != 1:
        what = "a terminal" if is_terminal_wanted else "a login"
        raise UsageError(f"{what} is for one node, and --node names {len(nodes)}", hint="clusterctl ssh --help")
    (node,) = nodes
    target = checked_target(inventory, node, deadlines)
    token = secrets.token_hex(8)
    argv = login_argv(
        target,
        key_file=login_key_file(inventory, home),
        own=identities_for_ssh(replace(inventory, nodes=(node,)), home, Path.home() / ".ssh"),
        known_hosts=write_known_hosts(inventory, home),
        command=command if command is None else marked(command, token),
        is_terminal_wanted=is_terminal_wanted,
        connect_timeout_s=deadlines.total_s,
        silence_s=deadlines.silence_s,
    )
    if command is not None:
        _guard(inventory, node, home, deadlines, token)
    become(argv)


def checked_target(inventory: Inventory, node: InventoryNode, deadlines: Deadlines) -> Target:
    """How to reach the node, which has shown the declared host key (see `check_host`). Raises NotReached."""
    try:
        target = target_of(inventory, node)
        session = None if target.proxy_argv is None else own_session(target.proxy_argv)
        if session is not None and (missing := missing_programs(session, which=shutil.which)) is not None:
            raise NodeFailure("proxy", missing)
        check_host(target, deadlines)
    except NodeFailure as e:
        raise not_reached(e, inventory, node) from e
    return target


def _guard(inventory: Inventory, node: InventoryNode, home: Home, deadlines: Deadlines, token: str) -> None:
    """Starts the process that hangs up the terminal once this computer is gone.

    It needs a key that we can use. Where only ssh can log in, by asking for a passphrase, sshd's own timeouts remain.
    """
    with contextlib.suppress(NodeFailure):
        keys = load_login_keys(replace(inventory, nodes=(node,)), home, ssh_dir=Path.home() / ".ssh")
        TerminalGuard(inventory=inventory, node=node, keys=keys, deadlines=deadlines, token=token).start()


def check_host(target: Target, deadlines: Deadlines) -> None:
    """Returns when the host shows the declared key; nobody logs in. Raises NodeFailure.

    Behind Session Manager nothing is checked, as opening a session takes seconds.
    """
    if target.proxy_argv is not None and uses_session_manager(own_session(target.proxy_argv)):
        return
    load()
    failures: list[BaseException] = []

    def task() -> Task:
        try:
            yield from _reach_and_close(target, deadlines)
        except BaseException as e:  # noqa: BLE001 the loop drops it; raised below
            failures.append(e)

    EventLoop(iter([task()]), width=1).run()
    if failures:
        raise failures[0]


def _reach_and_close(target: Target, deadlines: Deadlines) -> Generator[Waiting, bool, None]:
    link = yield from reach_host(target, deadlines, Clock(deadlines.total_s))
    yield Waiting(until=0.0)
    link.close()
