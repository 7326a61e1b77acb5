"""Opens the session that all private nodes share: to slot 0, and where that one is silent to another node.

python -m clusterctl.ssh.shared_session.opening HOME CLUSTER [INSTANCE THAT IS SILENT]
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.outputs import Inventory, InventoryNode, read_inventory

from clusterctl.home import Home
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.many_files import allow_many_files
from clusterctl.ssh.keys.login_keys import identities_for_ssh
from clusterctl.ssh.keys.openssh_files import login_key_file, write_known_hosts
from clusterctl.ssh.shared_session import relay
from clusterctl.ssh.shared_session.argv import own_session
from clusterctl.ssh.single.system_ssh import login_argv
from clusterctl.ssh.target import Target, target_of

TRIED = 2
"""Slot 0 and one other node: then each goes by its own session."""
LOGIN_S = 15.0
"""From the start of the session to the login: ssh itself waits `relay.SILENT_S` for the greeting."""
KEPT_S = 600
"""As long as the connections that commands leave behind."""
SILENCE_S = 9.0


def main(arguments: Sequence[str]) -> int:
    """0 when a session is open."""
    home, cluster, silent = Home(path=Path(arguments[0])), arguments[1], arguments[2]
    folder = home.warm_dir / relay.FOLDER_NAME / cluster
    allow_many_files()  # three for each node that is reached
    try:
        inventory = read_inventory(home.inventory_file(cluster))
        return 0 if any(_leads(node, inventory, home, folder) for node in candidates(inventory, silent)) else 1
    except (ClusterctlError, NodeFailure, OSError) as e:
        sys.stderr.write(f"{e}\n")  # the log in the folder
        return 1


def candidates(inventory: Inventory, silent: str) -> tuple[InventoryNode, ...]:
    """The nodes to try, in this order: by slot, and not the one that was silent."""
    there = [node for node in inventory.nodes if node.instance_id not in {None, silent}]
    return tuple(sorted(there, key=lambda node: node.slot)[:TRIED])


def master_argv(target: Target, inventory: Inventory, node: InventoryNode, home: Home) -> list[str]:
    """The ssh that goes into the background once it is logged in, and serves the socket in the working folder.

    Nothing of this computer is open to the node: no agent, no forwarding back, no command of the node's.
    """
    argv = login_argv(
        target,
        key_file=login_key_file(inventory, home),
        known_hosts=write_known_hosts(inventory, home),
        own=identities_for_ssh(replace(inventory, nodes=(node,)), home, Path.home() / ".ssh"),
        connect_timeout_s=relay.SILENT_S,
        silence_s=SILENCE_S,
    )
    kept = ("-f", "-N", "-M", "-S", relay.CONTROL, "-o", f"ControlPersist={KEPT_S}", "-o", "BatchMode=yes")
    closed = ("-o", "ForwardAgent=no", "-o", "ForwardX11=no", "-o", "LogLevel=ERROR")
    return [*argv[:1], *kept, *closed, *argv[1:]]


def _leads(node: InventoryNode, inventory: Inventory, home: Home, folder: Path) -> bool:
    """Whether this node leads to the others now; a session that is half open is ended."""
    target = target_of(inventory, node)
    session = None if target.proxy_argv is None else own_session(target.proxy_argv)
    argv = master_argv(replace(target, proxy_argv=session), inventory, node, home)
    if not _is_logged_in(argv, folder):
        return False
    leader = {"instance_id": str(node.instance_id), "host": target.host, "port": str(target.port)}
    (folder / relay.LEADER).write_text(json.dumps(leader), encoding="utf-8")
    if relay.answers(folder, leader):
        return True
    relay.end(folder)
    return False


def _is_logged_in(argv: Sequence[str], folder: Path) -> bool:
    ssh = subprocess.Popen(
        argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return ssh.wait(timeout=LOGIN_S) == 0
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(ssh.pid, signal.SIGKILL)  # the session's programs are in its group
        ssh.wait()
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
