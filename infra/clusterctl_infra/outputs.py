"""The Inventory: what a stack exports and the command line reads. Standard library only, read in milliseconds."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # JSON objects before they are checked

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.host_and_port import HIGHEST_PORT
from clusterctl_infra.names import HOSTS_SUFFIX, USUAL_STACK_NAME
from clusterctl_infra.strict_json import Fields, NotAsExpected, moment, parsed, shortened

VERSION = 1
MOST_INVENTORY_BYTES = 64 * 1024 * 1024
MOST_NODES = 100_000
LARGEST_COUNT = 2**53
"""The engine writes all numbers as floats, which hold every whole number up to here exactly."""
REHEARSAL_ACCOUNT_ID = "000000000000"
"""No AWS account has this number; the stand-in gives it as its own, so it tells a rehearsal from AWS everywhere."""


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
    port: int | None = None
    """The port of its SSH server; None: the cluster's."""


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
    """People's own public keys that may log in; empty: the cluster's key may."""


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """A cluster as the command line sees it, without asking anybody."""

    name: str
    cluster: str
    """The name, in a rehearsal with `@rehearsal` behind it, for hosts with `@hosts`: also the file's name."""
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
    """These four are parts of `usd_per_hour`; None is unknown."""
    addresses_go_with_machines: bool = False
    """Whether AWS gave the addresses with the machines and takes them back with them; if not, they bill until they are
    released."""
    prices_dated: str | None = None
    """The date of all these prices; None: written by an older clusterctl that kept only the sum."""
    account_id: str | None = None
    """The AWS account that the cluster is in: with another account's credentials it would look gone. None: written by
    an older clusterctl."""
    capacity: str = "on-demand"
    """With `spot`, the prices of machines are the most that they can cost, and nothing is reserved for them."""
    run_nodes_down: bool = False
    """True after `down` with retained storage: zero nodes on purpose."""
    advisory_end: str | None = None
    """For hosts: the instant until which a person meant to use them. Nothing ends them."""
    workflow_storage: str | None = None
    """`s3://BUCKET/PATH` below which workflows keep datasets; None: on storage that the nodes share."""

    @property
    def is_hosts(self) -> bool:
        """Whether its machines are somebody else's: no cloud is asked about them, and nothing ends them."""
        return self.cluster.endswith(HOSTS_SUFFIX)


def inventory_to_json(inventory: Inventory) -> dict[str, Any]:
    """A JSON-able dictionary with the version in it."""
    fields = dataclasses.asdict(inventory)
    for name in ("advisory_end", "workflow_storage"):
        if fields[name] is None:  # left out, so that stored inventories of clusters without it stay as they were
            del fields[name]
    for node in fields["nodes"]:
        if node["port"] is None:
            del node["port"]
    return {"version": VERSION, **fields}


def inventory_from_json(data: dict[str, Any], *, source: str) -> Inventory:
    """The inventory in `data`; unknown keys are ignored. Raises InventoryUnreadable naming `source`."""
    if data.get("version") != VERSION:
        raise InventoryUnreadable(
            f"{source}: inventory version {shortened(data.get('version'))}; this clusterctl reads {VERSION}"
        )
    try:
        row = Fields.of(data)
        ssh = InventorySsh(**_known(InventorySsh, row.fields("ssh")))
        nodes = tuple(InventoryNode(**_known(InventoryNode, node)) for node in row.objects("nodes", most=MOST_NODES))
        for name, port in (("ssh.port", ssh.port), *((f"nodes[{node.slot}].port", node.port) for node in nodes)):
            if port is not None and not 1 <= port <= HIGHEST_PORT:
                raise NotAsExpected(f"{name} is {port}, not a port")
        inventory = Inventory(**{**_known(Inventory, row, but=("ssh", "nodes")), "ssh": ssh, "nodes": nodes})
        for text in (inventory.started_at, inventory.deadline):
            if text:  # a person's own file has neither
                moment(text)
        return inventory
    except (TypeError, ValueError) as e:
        raise InventoryUnreadable(f"{source}: not an inventory ({e})") from e


def read_inventory(path: Path) -> Inventory:
    """The inventory in the file `path`. Raises InventoryUnreadable, FileNotFoundError."""
    try:
        data = parsed(path.read_bytes(), most_bytes=MOST_INVENTORY_BYTES)
    except NotAsExpected as e:
        raise InventoryUnreadable(f"{path}: {e}") from e
    if not isinstance(data, dict):
        raise InventoryUnreadable(f"{path}: not an inventory")
    inventory = inventory_from_json(data, source=str(path))
    if not (inventory.started_at and inventory.deadline):
        raise InventoryUnreadable(f"{path}: not an inventory (started_at or deadline is empty)")
    return inventory


def _known(kind: Any, row: Fields, *, but: Collection[str] = ()) -> dict[str, Any]:
    """The arguments in `row` for the dataclass `kind`. Raises NotAsExpected.

    A missing field that may be None is None, as the engine leaves nulls out; another one with a default is left out, so
    that the default holds.
    """
    fields = [field for field in dataclasses.fields(kind) if field.name not in but]
    return {
        field.name: _read(row, field.name, str(field.type))
        for field in fields
        if row.has(field.name) or field.default is dataclasses.MISSING or str(field.type).endswith("| None")
    }


def _read(row: Fields, name: str, type: str) -> object:
    """The field, of the type that it was declared with."""
    wanted, _, rest = type.partition(" | ")
    if rest == "None" and not row.has(name):
        return None
    if wanted == "str":
        return row.text(name)
    if wanted == "int":
        return row.whole(name, high=LARGEST_COUNT)
    if wanted == "float":
        return row.number(name, low=0)
    if wanted == "bool":
        return row.flag(name)
    if wanted != "tuple[str, ...]":
        raise TypeError(f"no reader for {type}")
    texts = row.texts(name)
    if name == "proxy_command" and not texts:
        raise NotAsExpected(f"{row.place}{name} is an empty list: the way to the nodes needs a program")
    return texts
