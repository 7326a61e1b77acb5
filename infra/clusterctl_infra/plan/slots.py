"""The slots of a cluster: each depends on its own number and on what all share, never on how many there are.

Only its rank may depend on the others: no machine is replaced because of its rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from clusterctl_infra.catalog.instance import InstanceType, Interface
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.identity import Identity
from clusterctl_infra.keys import host_public_key
from clusterctl_infra.names import SLOT_TAG
from clusterctl_infra.plan.model import InterfacePlan, NetworkPlan, SlotPlan
from clusterctl_infra.plan.network import slot_address
from clusterctl_infra.plan.storage import mount_facts
from clusterctl_infra.replaceable import digested, trigger_text

Layout = Sequence[Interface]


def interface_layout(config: ClusterConfig, instance_type: InstanceType, identity: Identity) -> Layout:
    """(card, device, kind) of every interface of a node; a single plain one without fabric."""
    return instance_type.interfaces(fabric=config.fabric != "none", layout=identity.layout)


def slot_plans(
    config: ClusterConfig,
    instance_type: InstanceType,
    network: NetworkPlan,
    identity: Identity,
    tags: Mapping[str, str],
    *,
    ranks: Sequence[int],
) -> tuple[SlotPlan, ...]:
    """The plans of the slots, one for each of `ranks`."""
    layout = interface_layout(config, instance_type, identity)
    interfaces = _interfaces(layout)
    shared = digested(_shared_facts(config, instance_type, network, identity, layout))
    return tuple(
        _slot_plan(config, network, identity, tags, interfaces=interfaces, shared=shared, slot=slot, rank=rank)
        for slot, rank in enumerate(ranks)
    )


def _slot_plan(
    config: ClusterConfig,
    network: NetworkPlan,
    identity: Identity,
    tags: Mapping[str, str],
    *,
    interfaces: Sequence[InterfacePlan],
    shared: Mapping[str, str],
    slot: int,
    rank: int,
) -> SlotPlan:
    name = f"{config.name}-{slot}"
    private_ip = slot_address(network.slot_cidr, slot)
    host_key = host_public_key(identity.seed, slot)
    return SlotPlan(
        slot=slot,
        rank=rank,
        name=name,
        private_ip=private_ip,
        interfaces=tuple(_with_address(interface, private_ip) for interface in interfaces),
        tags={**tags, "Name": name, SLOT_TAG: str(slot)},
        host_public_key=host_key,
        replacement_trigger=trigger_text({**shared, "host_key": [host_key]}),
    )


def _interfaces(layout: Layout) -> Sequence[InterfacePlan]:
    """A node's interfaces without an address; all nodes' plans share those that have none."""
    return [
        InterfacePlan(network_card_index=card, device_index=device, kind=kind, private_ip=None)
        for card, device, kind in layout
    ]


def _with_address(interface: InterfacePlan, private_ip: str) -> InterfacePlan:
    """The interface, with the slot's address if it is the primary one."""
    is_primary = (interface.network_card_index, interface.device_index) == (0, 0)
    return replace(interface, private_ip=private_ip) if is_primary else interface


def _shared_facts(
    config: ClusterConfig,
    instance_type: InstanceType,
    network: NetworkPlan,
    identity: Identity,
    layout: Layout,
) -> Mapping[str, object]:
    """What every slot's machine is made of: known before anything is created, in a preview too."""
    return {
        "image": identity.image_id,
        "instance_type": instance_type.name,
        "interfaces": [list(interface) for interface in layout],
        "subnet": network.adopted_node_subnet_id or network.node_subnet_cidr,
        "scripts": [[script.name, script.content, script.when, script.at] for script in config.scripts],
        "mounts": mount_facts(config),
    }
