"""Works out from the configuration and the record of a cluster of hosts its inventory and each node's plan and files.

Pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from clusterctl_bootstrap.host_files import HostPeer, HostTrust, environment_names, host_files
from clusterctl_bootstrap.node_plan import MountPlan, NodePlan, ScriptPlan
from clusterctl_infra.config.hosts import HostsConfig
from clusterctl_infra.host_and_port import SSH_PORT
from clusterctl_infra.keys import barrier_secret, node_key
from clusterctl_infra.outputs import Inventory, InventoryNode, InventorySsh
from clusterctl_infra.plan.inventory import BASTION_CONNECT_S

from clusterctl.hosts.record import HostsRecord, RecordedHost

NO_END = datetime(2099, 12, 31, 23, 59, 59, tzinfo=UTC)
"""Every node and inventory has a deadline; for hosts it is one that never comes, so that nobody is warned."""
TYPES = {"nfs": ("nfs", "nfs4"), "lustre": ("lustre", "lustre")}
"""Kind → (its type for mount(8), the type that the kernel may show instead); nfs(5): version 4 is a type of its own."""
NO_END_REASON = "nothing ends hosts"


def hosts_inventory(config: HostsConfig, record: HostsRecord, *, folder: Path) -> Inventory:
    """The cluster's inventory, from which every verb learns of it."""
    price = config.price_usd_per_hour
    return Inventory(
        name=record.name,
        cluster=record.cluster,
        cluster_id=record.cluster_id,
        run=1,
        rehearsal=False,
        region="",
        zone="",
        owner=config.owner or "",
        image_id="",
        instance_type="host",
        gpus_per_node=config.gpus_per_node,
        gpu_name=config.gpu_name,
        started_at=record.started_at,
        deadline=NO_END.isoformat(),
        deadline_reason=NO_END_REASON,
        usd_per_hour=None if price is None else round(price * len(record.hosts), 6),
        budget_usd=None,
        generation=record.generation,
        ssh=_ssh(config, folder),
        nodes=nodes_of(record.name, record.hosts, record.slot_ranks),
        stack_dir=str(folder),
        capacity="hosts",
        advisory_end=_advisory_end(config, record),
    )


def nodes_of(name: str, hosts: Sequence[RecordedHost], ranks: Sequence[int] = ()) -> tuple[InventoryNode, ...]:
    """The inventory's rows for these machines, by slot. `ranks`: the rank of each slot; empty: its number."""
    ranks = ranks or range(len(hosts))
    return tuple(_node(name, slot, ranks[slot], host) for slot, host in enumerate(hosts))


def node_plans(config: HostsConfig, record: HostsRecord) -> tuple[NodePlan, ...]:
    """The plan that each host gets, by slot. Its rank is only provisional: the ranks come with the membership."""
    return tuple(
        NodePlan(
            cluster=record.name,
            cluster_id=record.cluster_id,
            run=1,
            generation=0,
            slot=slot,
            rank=slot,
            nodes=len(record.hosts),
            gpus_per_node=config.gpus_per_node,
            slot_cidr=addresses(record.hosts),
            deadline=NO_END,
            imds="users",
            env=config.env,
            mounts=mounts_of(config),
            packages=config.packages,
            scripts=tuple(
                ScriptPlan(name=script.name, content=script.content, when=script.when, at=script.at)
                for script in config.scripts
            ),
            host_user=config.ssh.user,
            ssh_port=record.hosts[slot].private_port,
        )
        for slot in range(len(record.hosts))
    )


def mounts_of(config: HostsConfig) -> tuple[MountPlan, ...]:
    """What every host mounts, in the form that the agent reads."""
    return tuple(
        MountPlan(
            path=row.mount,
            kind=row.kind,
            source=row.behind.source,
            options=row.behind.options,
            writable=row.behind.writable,
            types=TYPES[row.kind],
        )
        for row in config.storage
    )


def install_request(config: HostsConfig, record: HostsRecord, slot: int) -> bytes:
    """The JSON that `on_node/host` gets to make the machine of this slot a node."""
    plan = node_plans(config, record)[slot]
    seed = bytes.fromhex(record.seed)
    key = node_key(seed)
    trust = HostTrust(
        node_private_key=key.private_pem,
        node_public_key=key.public,
        barrier_secret=barrier_secret(seed).hex(),
        peers=tuple(
            HostPeer(address=host.private_ip, host_key=host.host_key, port=host.private_port) for host in record.hosts
        ),
    )
    request = {
        "cluster_id": record.cluster_id,
        "user": config.ssh.user,
        "addresses": [host.private_ip for host in record.hosts],
        "port": record.hosts[slot].private_port,
        "environment": environment_names(plan),
        "mounts": {mount.path: _mount_key(mount) for mount in plan.mounts},
        "files": host_files(plan, trust),
    }
    return json.dumps(request).encode()


def with_membership(config: HostsConfig, record: HostsRecord) -> HostsRecord:
    """The record, with the next generation if there is something new to tell its nodes."""
    content: dict[str, object] = {
        "addresses": addresses(record.hosts),
        "env": dict(config.env),
        "gpus": config.gpus_per_node,
    }
    if record.ranks:
        content["ranks"] = record.slot_ranks
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    if digest == record.content:
        return record
    return replace(record, generation=record.generation + 1, content=digest)


def addresses(hosts: Sequence[RecordedHost]) -> str:
    """The addresses of all slots, in the form that the agent reads (node/environment.py, `address`)."""
    if len(hosts) > 1:
        return ",".join(host.private_ip for host in hosts)
    return hosts[0].private_ip + ("/128" if ":" in hosts[0].private_ip else "/32")


def _mount_key(mount: MountPlan) -> str:
    """A text that differs whenever the mount has to be made anew."""
    return " ".join([mount.kind, mount.source, mount.options, "rw" if mount.writable else "ro"])


def _ssh(config: HostsConfig, folder: Path) -> InventorySsh:
    key_file, bastion = config.ssh.key_file, config.ssh.bastion
    way = ("-W", "[{host}]:{port}", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={BASTION_CONNECT_S}")
    return InventorySsh(
        user=config.ssh.user,
        key_file=None if key_file is None else str((folder / Path(key_file).expanduser()).absolute()),
        proxy_command=None if bastion is None else ("ssh", *way, bastion),
        address="public",
    )


def _node(name: str, slot: int, rank: int, host: RecordedHost) -> InventoryNode:
    return InventoryNode(
        slot=slot,
        rank=rank,
        name=f"{name}-{slot}",
        private_ip=host.private_ip,
        host_public_key=host.host_key,
        public_ip=host.address,
        port=None if host.port == SSH_PORT else host.port,
    )


def _advisory_end(config: HostsConfig, record: HostsRecord) -> str | None:
    if config.caps.runtime is None:
        return None
    return (datetime.fromisoformat(record.started_at) + config.caps.runtime).isoformat()
