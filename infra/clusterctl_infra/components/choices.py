"""What a cluster has or goes without, by its configuration and its plan. Pure."""

from __future__ import annotations

from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.stack import StackSettings
from clusterctl_infra.plan.model import ClusterPlan


def has_login_key(config: ClusterConfig) -> bool:
    """Whether the cluster gets a login key of its own, because the configuration gives none."""
    return not config.access.authorized_keys


def uses_session_manager(config: ClusterConfig, plan: ClusterPlan) -> bool:
    """Whether Session Manager is the only way to the nodes: they have no public address, and there is no bastion."""
    return plan.network.public_addresses == "none" and config.access.bastion is None


def reserved_places(plan: ClusterPlan, settings: StackSettings) -> int:
    """For how many machines a reservation is made; 0 unless they are on-demand, and once a reservation has ended."""
    nodes = len(plan.slots)
    is_none = nodes == 0 or settings.unreserved or plan.capacity != "on-demand"
    return 0 if is_none else max(nodes, settings.reserved)


def slot_range(plan: ClusterPlan) -> str | None:
    """The subnet and the range in it in which slots keep their addresses.

    None in the cluster's own network, where they follow from cluster.yaml, and while there are no nodes.
    """
    network = plan.network
    is_kept = network.adopted_vpc_id is not None and plan.slots
    return f"{network.adopted_node_subnet_id} {network.slot_cidr}" if is_kept else None


def architecture_of(plan: ClusterPlan, catalog: Catalog) -> str:
    """The CPU architecture that the machine image has to be built for."""
    found = catalog.instance_type(plan.instance_type)
    return "x86_64" if found is None else found.architecture
