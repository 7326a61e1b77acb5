"""Reads machines that clusterctl did not make from a person's file: a whole inventory, or only its essential lines."""

from __future__ import annotations

import dataclasses
import getpass
import importlib
import os
import shlex
from pathlib import Path
from typing import Any, Literal  # JSON before it is checked

from clusterctl_infra.errors import ConfigError
from clusterctl_infra.outputs import MOST_INVENTORY_BYTES, Inventory, InventoryUnreadable, inventory_from_json
from clusterctl_infra.strict_json import NotAsExpected, parsed, shortened

from clusterctl.ssh.target import PersonsNode
from clusterctl.text.next_commands import edit
from clusterctl.text.quantities import count

LONGEST_NAME = 253
"""The most characters that a name in DNS may have (RFC 1035)."""
_DEFAULTS = {
    "version": 1,
    "cluster_id": "",
    "run": 1,
    "rehearsal": False,
    "region": "",
    "zone": "",
    "owner": "",
    "image_id": "",
    "instance_type": "",
    "gpus_per_node": 0,
    "gpu_name": None,
    "started_at": "",
    "deadline": "",
    "deadline_reason": "",
    "usd_per_hour": None,
    "budget_usd": None,
    "generation": 0,
}


def read_any_inventory(path: Path, *, ssh_config: Path) -> Inventory:
    """The machines in the file `path`. Raises ConfigError with every problem in it.

    The shortest file that will do: `{"nodes": [{"name": "gpu1", "host_key": "ssh-ed25519 AAAA…"}]}`; a whole inventory
    as clusterctl writes it will do, too. What the file does not say (address, user, port, proxy command, keys) is taken
    from `ssh_config`.
    """
    try:
        data = parsed(path.read_bytes(), most_bytes=MOST_INVENTORY_BYTES)
    except OSError as e:
        raise ConfigError(
            f"--inventory {path}: cannot be read ({e.strerror})", hint=f"ls -l {shlex.quote(str(path))}"
        ) from e
    except NotAsExpected as e:
        raise ConfigError(f"--inventory {path}: {e}", hint=edit(path)) from e
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), list):
        raise ConfigError(f"--inventory {path}: no list `nodes` in it", hint=edit(path))
    if not data["nodes"]:
        raise ConfigError(f"--inventory {path}: the list `nodes` is empty", hint=edit(path))
    problems = [problem for number, row in enumerate(data["nodes"]) for problem in _problems(number, row)]
    problems += [*_duplicates(data["nodes"], "name"), *_duplicates(data["nodes"], "slot")]
    problems += _ssh_problems(data.get("ssh", {}))
    if problems:
        message = f"--inventory {path}: {count(len(problems), 'problem')}"
        raise ConfigError(message, problems=problems, hint=edit(path))
    try:
        inventory = inventory_from_json(_completed(data, path.stem), source=str(path))
    except InventoryUnreadable as e:
        raise ConfigError(f"--inventory {e.message}", hint=edit(path)) from e
    return _with_ssh_config(inventory, data, ssh_config) if ssh_config.is_file() else inventory


def _with_ssh_config(inventory: Inventory, data: dict[str, Any], path: Path) -> Inventory:
    """The inventory, completed by what the person's ssh configuration says of the nodes, where the file is silent."""
    persons_config = importlib.import_module("clusterctl.ssh.persons_config")
    config, ssh = persons_config.read_ssh_config(path), data.get("ssh", {})
    nodes = []
    for node, row in zip(inventory.nodes, data["nodes"], strict=True):
        settings = persons_config.settings_of(node.name, config)
        has_address = any(row.get(name) for name in ("address", "private_ip", "public_ip"))
        facts: dict[str, Any] = {
            **dataclasses.asdict(node),
            "private_ip": node.private_ip if has_address else settings.host,
            "user": None if "user" in ssh else settings.user,
            "port": node.port if node.port is not None or "port" in ssh else settings.port,
            "proxy_argv": None if ssh.get("proxy_command") else settings.proxy_argv,
            "identity_files": () if ssh.get("key_file") else settings.identity_files,
            "identity_agent": settings.identity_agent,
            "has_identities_only": settings.has_identities_only,
        }
        nodes.append(PersonsNode(**facts))
    return dataclasses.replace(inventory, nodes=tuple(nodes))


def _problems(number: int, row: Any) -> list[str]:
    if not isinstance(row, dict):
        return [f"  nodes[{number}]: {shortened(row)} is no node"]
    wanted = {
        "name": ("name",),
        "host_key": ("host_key", "host_public_key"),
    }
    missing = [
        f"  nodes[{number}].{key}: missing"
        for key, names in wanted.items()
        if not any(isinstance(row.get(name), str) and row[name] for name in names)
    ]
    name = row.get("name")
    if isinstance(name, str) and (len(name) > LONGEST_NAME or not name.isprintable()):
        missing.append(f"  nodes[{number}].name: {shortened(name)} is longer than {LONGEST_NAME} or not printable")
    return missing


def _duplicates(rows: list[Any], key: Literal["name", "slot"]) -> list[str]:
    """A problem for each row whose name or slot an earlier row has. The slot of a row that names none is its index."""
    kind = {"name": str, "slot": int}[key]
    first: dict[object, int] = {}
    problems = []
    for number, row in enumerate(rows):
        value = row.get(key, number) if isinstance(row, dict) else number
        if isinstance(value, kind) and first.setdefault(value, number) != number:
            problems.append(f"  nodes[{number}].{key}: {shortened(value)} is the {key} of nodes[{first[value]}], too")
    return problems


def _ssh_problems(ssh: Any) -> list[str]:
    if not isinstance(ssh, dict):
        return [f"  ssh: {shortened(ssh)} is no object"]
    key_file = ssh.get("key_file")
    if key_file is not None and (not isinstance(key_file, str) or "\0" in key_file):
        return [f"  ssh.key_file: {shortened(key_file)} is no path"]
    return []


def _completed(data: dict[str, Any], name: str) -> dict[str, Any]:
    """The file's content with every field that an inventory has."""
    ssh: dict[str, Any] = {"user": getpass.getuser(), "key_file": None, "proxy_command": None, "address": "private"}
    ssh.update(data.get("ssh", {}))
    nodes = []
    for number, row in enumerate(data["nodes"]):
        slot, address = row.get("slot", number), row.get("address")
        facts = {
            "slot": slot,
            "rank": slot,
            **row,
            "private_ip": address or row.get("private_ip", row["name"]),
            # The address that is dialled: an inventory that clusterctl wrote may have another one in `public_ip`.
            **({"public_ip": address} if address and ssh["address"] == "public" else {}),
            "host_public_key": row.get("host_key") or row.get("host_public_key", ""),
        }
        nodes.append(facts)
    whole = {"name": name, "cluster": name, **_DEFAULTS, **data}
    if ssh["key_file"]:
        ssh["key_file"] = os.path.expanduser(ssh["key_file"])  # unchanged if there is no such user
    return {**whole, "ssh": ssh, "nodes": nodes}
