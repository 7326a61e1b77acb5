"""The Inventory: what a stack exports and the command line reads. Standard library only, read in milliseconds."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # JSON objects before they are checked

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.names import USUAL_STACK_NAME

VERSION = 1
REHEARSAL_ACCOUNT_ID = "000000000000"
"""No AWS account has this number; the stand-in answers it, so a rehearsal is known by it everywhere."""


class InventoryUnreadable(ClusterctlError):
    """The inventory file is not one, or was written by a newer clusterctl."""


@dataclass(frozen=True, kw_only=True)
class InventoryNode:
    """One slot, and the machine that is in it now (None before it exists)."""

    slot: int
    rank: int
    name: str
    private_ip: str
    host_public_key: str
    instance_id: str | None = None
    public_ip: str | None = None


@dataclass(frozen=True, kw_only=True)
class InventorySsh:
    """How nodes are reached."""

    user: str
    key_file: str | None
    """Relative to `$CLUSTERCTL_HOME/keys`; None: the person's own keys."""
    proxy_command: tuple[str, ...] | None
    """argv with `{host}`, `{port}` and `{instance_id}`; None: directly."""
    address: str = "private"
    """Which address to dial: `private` or `public`."""
    port: int = 22
    public_keys: tuple[str, ...] = ()
    """The keys of people's own that may log in; empty: the cluster's."""


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """A cluster as the command line sees it, without asking anybody."""

    name: str
    cluster: str
    """The name with `@rehearsal` behind it in a rehearsal: also the file's name."""
    cluster_id: str
    run: int
    rehearsal: bool
    region: str
    zone: str
    owner: str
    image_id: str
    instance_type: str
    gpus_per_node: int
    gpu_name: str | None
    started_at: str
    deadline: str
    deadline_reason: str
    usd_per_hour: float | None
    budget_usd: float | None
    generation: int
    """0 until the membership is known."""
    ssh: InventorySsh
    nodes: tuple[InventoryNode, ...]
    stack_dir: str | None = None
    """Where this computer last ran the stack; local, never a resource input."""
    stack_name: str = USUAL_STACK_NAME
    birth: str | None = None
    """What a machine made by the last `up` takes on at birth; others may lack some of it."""
    disks_usd_per_hour: float | None = None
    addresses_usd_per_hour: float | None = None
    gateway_usd_per_hour: float | None = None
    storage_usd_per_hour: float | None = None
    """Parts of `usd_per_hour`; None is unknown."""
    addresses_go_with_machines: bool = False
    """AWS gave them with the machines and takes them back with them; else they are paid until they are released."""
    prices_dated: str | None = None
    """Of which date all these prices are; None: written by a clusterctl that kept the sum alone."""
    account_id: str | None = None
    """The AWS account that it is in: with another one's credentials it would look gone. None: written by an older
    clusterctl."""
    capacity: str = "on-demand"
    """Or `spot`: the prices of machines are the most that they can cost, and nothing is reserved for them."""
    run_nodes_down: bool = False
    """True after `down` with retained storage: zero nodes on purpose."""


def inventory_to_json(inventory: Inventory) -> dict[str, Any]:
    """A JSON-able dictionary with the version in it."""
    return {"version": VERSION, **dataclasses.asdict(inventory)}


def inventory_from_json(data: dict[str, Any], *, source: str) -> Inventory:
    """The inventory in `data`; unknown keys are ignored. Raises InventoryUnreadable naming `source`."""
    if data.get("version") != VERSION:
        raise InventoryUnreadable(
            f"{source}: inventory version {data.get('version')!r}; this clusterctl reads {VERSION}"
        )
    try:
        ssh = InventorySsh(**_known(InventorySsh, data["ssh"]))
        proxy, public_keys = ssh.proxy_command, tuple(ssh.public_keys)
        nodes = tuple(InventoryNode(**_known(InventoryNode, row)) for row in data["nodes"])
        return Inventory(
            **{
                **_known(Inventory, data),
                "ssh": dataclasses.replace(
                    ssh, proxy_command=None if proxy is None else tuple(proxy), public_keys=public_keys
                ),
                "nodes": nodes,
            }
        )
    except (KeyError, TypeError, ValueError) as e:
        raise InventoryUnreadable(f"{source}: not an inventory ({e})") from e


def read_inventory(path: Path) -> Inventory:
    """The inventory in the file `path`. Raises InventoryUnreadable, FileNotFoundError."""
    try:
        data = json.loads(path.read_bytes())
    except ValueError as e:
        raise InventoryUnreadable(f"{path}: not JSON ({e})") from e
    if not isinstance(data, dict):
        raise InventoryUnreadable(f"{path}: not an inventory")
    return inventory_from_json(data, source=str(path))


def _known(kind: Any, row: dict[str, Any]) -> dict[str, Any]:
    """The row's fields of `kind`; what may be None and is not there is None, as the engine leaves nulls out."""
    return {
        field.name: row.get(field.name)
        for field in dataclasses.fields(kind)
        if field.name in row or str(field.type).endswith("| None")
    }
