"""What a cluster costs per hour, as far as the price snapshot knows."""

from __future__ import annotations

from collections.abc import Sequence

from clusterctl_infra.catalog.charges import RegionCharges
from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.plan.model import NetworkPlan, PricePlan
from clusterctl_infra.plan.spot import SpotPrice, spot_price
from clusterctl_infra.plan.storage import storage_usd_per_hour
from clusterctl_infra.plan.storage_model import StoragePlan


def price_plan(
    config: ClusterConfig,
    catalog: Catalog,
    network: NetworkPlan,
    storage: Sequence[StoragePlan],
    *,
    instance_type: str,
    nodes: int,
) -> PricePlan:
    """Prices for `nodes` machines; an unknown one makes every sum that holds it unknown.

    Spot machines are counted at the most that they can cost: no sum is too low, and no deadline too late.
    """
    spot = _spot(config, catalog, instance_type)
    node = node_usd_per_hour(config, catalog, instance_type, spot)
    nodes_usd_per_hour = _times(node, nodes)
    charges = catalog.charges.get(config.region)
    disk = None if charges is None else charges.disk_usd_per_gib_hour * config.root_disk
    disks = _times(disk, nodes)
    gateway = _gateway_usd_per_hour(network, charges, nodes)
    addresses = _public_address_count(network, nodes) * catalog.public_address_usd_per_hour
    storage_price = storage_usd_per_hour(storage)
    return PricePlan(
        node_usd_per_hour=node,
        nodes_usd_per_hour=nodes_usd_per_hour,
        disks_usd_per_hour=disks,
        addresses_usd_per_hour=addresses,
        gateway_usd_per_hour=gateway,
        storage_usd_per_hour=storage_price,
        total_usd_per_hour=_sum(nodes_usd_per_hour, disks, addresses, gateway, storage_price),
        cap_node_usd_per_hour=config.caps.price_usd_per_hour,
        cap_total_usd_per_hour=config.caps.total_usd_per_hour,
        prices_dated=catalog.price_dated(instance_type, config.region),
        spot=spot,
        is_reserved=config.market == "on-demand",
    )


def node_usd_per_hour(
    config: ClusterConfig, catalog: Catalog, instance_type: str, spot: SpotPrice | None
) -> float | None:
    """The price at which one machine is counted: 0 in a capacity block, which was paid in advance."""
    if config.market == "capacity-block":
        return 0.0
    return catalog.price_usd_per_hour(instance_type, config.region) if spot is None else spot.max_usd_per_hour


def _spot(config: ClusterConfig, catalog: Catalog, instance_type: str) -> SpotPrice | None:
    """The price of spot machines; None: the machines are not on spot capacity."""
    if config.market != "spot":
        return None
    return spot_price(
        cap_usd_per_hour=config.caps.price_usd_per_hour,
        on_demand_usd_per_hour=catalog.price_usd_per_hour(instance_type, config.region),
        list_usd_per_hour=catalog.spot_price_usd_per_hour(instance_type, config.region),
    )


def _public_address_count(network: NetworkPlan, nodes: int) -> int:
    """How many public addresses AWS bills: the nodes', automatic ones too, or else the one of the NAT gateway.

    Without nodes there is neither.
    """
    if network.public_addresses != "none":
        return nodes
    return 0 if network.adopted_vpc_id is not None or nodes == 0 else 1


def _gateway_usd_per_hour(network: NetworkPlan, charges: RegionCharges | None, nodes: int) -> float | None:
    """The NAT gateway's price: 0 if nodes have public addresses, as there is none, or if the network is adopted, as the
    gateway is not the cluster's.

    Without nodes it is 0, too: `down` and the deadline end the gateway with the last node.
    """
    if network.public_addresses != "none" or network.adopted_vpc_id is not None or nodes == 0:
        return 0.0
    return None if charges is None else charges.nat_gateway_usd_per_hour


def _times(price: float | None, count: int) -> float | None:
    if count == 0:
        return 0.0
    return None if price is None else price * count


def _sum(*parts: float | None) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
