"""What the plan gives one node at birth: its facts, its access and the user-data that carries them."""

from __future__ import annotations

from collections.abc import Sequence

from clusterctl_bootstrap.agent_source import agent_sources, agent_version
from clusterctl_bootstrap.node.environment import DOMAIN
from clusterctl_bootstrap.node_plan import MountPlan, NodeAccess, NodePlan, NodeTrust, ScriptPlan
from clusterctl_bootstrap.render import fitted, render_user_data

from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.identity import Identity
from clusterctl_infra.keys import barrier_secret, host_authority, host_certificate, host_key, login_key, node_key
from clusterctl_infra.plan.model import ClusterPlan, NetworkPlan, PricePlan
from clusterctl_infra.plan.network import slot_address
from clusterctl_infra.plan.storage import stand_in_mounts
from clusterctl_infra.replaceable import SPOT_FACT, birth_text

BIRTH_GENERATION = 0
"""Pushed memberships start at 1 and always win."""


def node_plan(
    config: ClusterConfig, plan: ClusterPlan, slot: int, *, mounts: Sequence[MountPlan] | None = None
) -> NodePlan:
    """The facts of `slot`. Their `nodes` is the size that the configuration asks for, also while the cluster is down.

    `mounts` have the names that AWS gave; None: before anything exists, stand-ins of the same length are used.
    """
    kinds = [kind for _, _, kind in plan.interface_layout]
    efa_interfaces = sum(kind != "interface" for kind in kinds)
    return NodePlan(
        cluster=plan.name,
        cluster_id=plan.cluster_id,
        run=plan.run,
        generation=BIRTH_GENERATION,
        slot=slot,
        rank=slot,
        nodes=config.nodes,
        gpus_per_node=plan.gpus_per_node,
        slot_cidr=plan.network.slot_cidr,
        deadline=plan.deadline.at,
        imds=config.imds,
        fabric=_fabric(config, efa_interfaces),
        efa_interfaces=efa_interfaces,
        env=dict(config.env),
        mounts=stand_in_mounts(plan.storage, region=plan.region) if mounts is None else tuple(mounts),
        packages=tuple(config.packages),
        scripts=(
            *(() if plan.mount_clients is None else (plan.mount_clients,)),
            *(
                ScriptPlan(name=script.name, content=script.content, when=script.when, at=script.at)
                for script in config.scripts
            ),
        ),
    )


def _fabric(config: ClusterConfig, efa_interfaces: int) -> str:
    if not efa_interfaces:
        return "none"
    return "required" if config.fabric == "required" else "efa"


def node_access(config: ClusterConfig, plan: ClusterPlan, identity: Identity, slot: int) -> NodeAccess:
    """Who may log in to `slot`, its own host key, and the keys by which nodes know each other."""
    key = host_key(identity.seed, slot)
    return NodeAccess(
        user=config.access.user,
        authorized_keys=authorized_keys(config, identity),
        host_private_key=key.private_pem,
        host_public_key=key.public,
        trust=node_trust(
            identity.seed, slot, name=f"{plan.name}-{slot}", address=slot_address(plan.network.slot_cidr, slot)
        ),
    )


def node_trust(seed: bytes, slot: int, *, name: str, address: str) -> NodeTrust:
    """The keys with which `slot` proves itself to the other nodes, and by which it knows them."""
    key = node_key(seed)
    return NodeTrust(
        node_private_key=key.private_pem,
        node_public_key=key.public,
        host_authority=host_authority(seed),
        host_certificate=host_certificate(seed, slot, principals=(name, address, f"{name}.{DOMAIN}")),
        barrier_secret=barrier_secret(seed).hex(),
    )


def authorized_keys(config: ClusterConfig, identity: Identity) -> tuple[str, ...]:
    """The keys that open the login user's account: a person's own, else the cluster's derived one."""
    return tuple(config.access.authorized_keys) or (login_key(identity.seed).public,)


def user_data(
    config: ClusterConfig,
    plan: ClusterPlan,
    identity: Identity,
    slot: int,
    *,
    mounts: Sequence[MountPlan] | None = None,
) -> bytes:
    """The user-data of `slot`: the same bytes at every `up` of an unchanged cluster. Raises UserDataTooLarge."""
    return render_user_data(node_plan(config, plan, slot, mounts=mounts), node_access(config, plan, identity, slot))


def delivered_scripts(config: ClusterConfig, plan: ClusterPlan, identity: Identity, slot: int) -> tuple[str, ...]:
    """The scripts that the user-data of `slot` has no room for."""
    node = fitted(node_plan(config, plan, slot), node_access(config, plan, identity, slot))
    return tuple(script.name for script in node.scripts if script.is_delivered)


def born_with(config: ClusterConfig, network: NetworkPlan, price: PricePlan, clients: ScriptPlan | None) -> str:
    """What every node takes on only at birth: it is neither delivered to a running node nor a reason to replace one."""
    return birth_text(
        {
            # Only an automatic address comes with the machine; an elastic one can be given and taken.
            "access": "automatic" if network.public_addresses == "automatic" else "other",
            "agent": agent_version(agent_sources()),
            "imds": config.imds,
            "packages": list(config.packages),
            **({} if clients is None else {"mount-clients": [clients.content]}),
            "root-disk": f"{config.root_disk}GiB",
            "kms-key": [config.kms_key],
            # A spot request keeps the maximum that it was made with.
            **({} if price.spot is None else {SPOT_FACT: price.spot.max_price or "unknown"}),
        }
    )
