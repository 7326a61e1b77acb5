"""The inventory as the plan knows it: complete, but for the machines that do not exist yet."""

from __future__ import annotations

from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.names import REHEARSAL_SUFFIX
from clusterctl_infra.outputs import REHEARSAL_ACCOUNT_ID, Inventory, InventoryNode, InventorySsh
from clusterctl_infra.plan.model import ClusterPlan, SlotPlan

BASTION_CONNECT_S = 10


def inventory(config: ClusterConfig, plan: ClusterPlan, *, account_id: str) -> Inventory:
    """What the command line needs to find, reach and end the cluster; the account says whether it is a rehearsal."""
    is_rehearsal = account_id == REHEARSAL_ACCOUNT_ID
    cluster = cluster_name(plan.name, account_id=account_id)
    return Inventory(
        name=plan.name,
        cluster=cluster,
        cluster_id=plan.cluster_id,
        run=plan.run,
        rehearsal=is_rehearsal,
        account_id=account_id,
        region=plan.region,
        zone=plan.zone,
        owner=plan.owner,
        image_id=plan.image_id,
        instance_type=plan.instance_type,
        capacity=plan.capacity,
        gpus_per_node=plan.gpus_per_node,
        gpu_name=plan.gpu_name,
        started_at=plan.started_at.isoformat(),
        deadline=plan.deadline.at.isoformat(),
        deadline_reason=plan.deadline.reason,
        usd_per_hour=_rounded(plan.price.total_usd_per_hour),
        disks_usd_per_hour=_rounded(plan.price.disks_usd_per_hour),
        gateway_usd_per_hour=_rounded(plan.price.gateway_usd_per_hour),
        addresses_usd_per_hour=_rounded(plan.price.addresses_usd_per_hour),
        addresses_go_with_machines=plan.network.public_addresses == "automatic",
        storage_usd_per_hour=_rounded(plan.price.storage_usd_per_hour),
        prices_dated=plan.price.prices_dated,
        budget_usd=plan.deadline.budget_usd,
        generation=0,
        ssh=_ssh(config, plan, cluster=cluster, is_rehearsal=is_rehearsal),
        birth=plan.birth,
        nodes=tuple(_node(slot) for slot in plan.slots),
        run_nodes_down=not plan.slots,
        workflow_storage=config.workflow_storage,
    )


def cluster_name(name: str, *, account_id: str) -> str:
    """The name, with a suffix in a rehearsal, so that nobody takes one for the real cluster."""
    return name + REHEARSAL_SUFFIX if account_id == REHEARSAL_ACCOUNT_ID else name


def _ssh(config: ClusterConfig, plan: ClusterPlan, *, cluster: str, is_rehearsal: bool) -> InventorySsh:
    """How nodes are reached, without a proxy command in a rehearsal: the Inventory resource adds the one that works."""
    is_public = plan.network.public_addresses != "none" and not is_rehearsal
    return InventorySsh(
        user=config.access.user,
        key_file=None if config.access.authorized_keys else f"{cluster}/id_ed25519",
        proxy_command=None if is_rehearsal else proxy_command(config, plan),
        address="public" if is_public else "private",
        public_keys=tuple(config.access.authorized_keys),
    )


def proxy_command(config: ClusterConfig, plan: ClusterPlan) -> tuple[str, ...] | None:
    """The command whose input and output are a private node's port 22, on AWS; None where nodes are dialled.

    Session Manager: Systems Manager User Guide, "Allow and control permissions for SSH connections through Session
    Manager" (2026-11-21). A bastion is reached by the person's own ssh settings, which also know its host key.
    """
    if plan.network.public_addresses != "none":
        return None
    if config.access.bastion is not None:
        way = ("-W", "{host}:{port}", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={BASTION_CONNECT_S}")
        return ("ssh", *way, config.access.bastion)
    session = ("--target", "{instance_id}", "--document-name", "AWS-StartSSHSession")
    return ("aws", "ssm", "start-session", "--region", plan.region, *session, "--parameters", "portNumber={port}")


def _rounded(price: float | None) -> float | None:
    """The price to six decimals, which is finer than a cent in a month."""
    return None if price is None else round(price, 6)


def _node(slot: SlotPlan) -> InventoryNode:
    return InventoryNode(
        slot=slot.slot,
        rank=slot.rank,
        name=slot.name,
        private_ip=slot.private_ip,
        host_public_key=slot.host_public_key,
    )
