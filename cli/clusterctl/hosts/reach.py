"""Looks at hosts, makes them nodes, and undoes that, on all of them in parallel.

All of it goes over SSH, and each host has to have the host key that was declared.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from clusterctl_infra.config.hosts import HostsConfig
from clusterctl_infra.outputs import Inventory, InventoryNode
from clusterctl_infra.strict_json import NotAsExpected, parsed_object

from clusterctl.hosts.host_check import LOOK, HostLook, look_command
from clusterctl.hosts.host_program import host_program
from clusterctl.probes.probe import ProbeUnreadable
from clusterctl.ssh.command import Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.fanout.libssh2 import load
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.results import NodeResult

CONNECT_S = 15.0
CHANGE_S = 120.0
"""How long a change may take: it writes some files and a unit; stopping jobs takes longest."""
MOST_AT_A_TIME = 16


def look_at_hosts(inventory: Inventory, config: HostsConfig, keys: LoginKeys) -> Mapping[int, HostLook | str]:
    """Slot → what the look at the host found, or why it failed. Nothing is changed on the hosts."""
    results = run_on_nodes(
        inventory,
        inventory.nodes,
        Command(line=look_command(config), timeout_s=LOOK.limit_s),
        keys=keys,
        deadlines=Deadlines.within(CONNECT_S),
    )
    return {slot: _looked(result) for slot, result in results.items()}


def change_hosts(verb: str, inventory: Inventory, requests: Mapping[int, bytes], keys: LoginKeys) -> dict[int, str]:
    """Runs `install` or `remove` on the hosts; returns slot → why it failed there, empty if all succeeded.

    `requests`: slot → what the program there gets on stdin; other slots are left alone.
    """
    line = shlex.join(["sudo", "-n", "/usr/bin/python3", "-ISc", host_program(), verb])

    def change(node: InventoryNode) -> str | None:
        results = run_on_nodes(
            inventory,
            [node],
            Command(line=line, timeout_s=CHANGE_S),
            keys=keys,
            deadlines=Deadlines.within(CONNECT_S),
            stdin=requests[node.slot],
        )
        return _refusal(results[node.slot])

    nodes = [node for node in inventory.nodes if node.slot in requests]
    load()  # before there are threads
    # Each host gets another stdin, and a fan-out sends the same to all, so each host has a fan-out of its own.
    with ThreadPoolExecutor(max_workers=MOST_AT_A_TIME) as pool:
        answers = dict(zip((node.slot for node in nodes), pool.map(change, nodes), strict=True))
    return {slot: why for slot, why in answers.items() if why is not None}


def remove_request(cluster_id: str) -> bytes:
    """The JSON that `on_node/host` gets to remove all that it wrote."""
    return json.dumps({"cluster_id": cluster_id}).encode()


def _looked(result: NodeResult) -> HostLook | str:
    if result.failure is not None:
        return result.failure.message_under(result.name)
    try:
        return LOOK.parse(result.stdout.decode(errors="replace"))
    except ProbeUnreadable as e:
        errors = result.stderr.decode(errors="replace").strip().splitlines()
        return f"{e}{f' ({errors[-1]})' if errors else ''}"


def _refusal(result: NodeResult) -> str | None:
    if result.failure is not None:
        return result.failure.message_under(result.name)
    try:
        answer = parsed_object(result.stdout)
        return None if answer.flag("ok") else answer.text("error")
    except NotAsExpected:
        lines = (result.stderr or result.stdout).decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"the program ended with {result.exit_code} and said nothing"
