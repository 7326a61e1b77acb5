"""What a configuration means, as plain data: the result of `plan()`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from clusterctl_bootstrap.node_plan import ScriptPlan

from clusterctl_infra.plan.spot import SpotPrice
from clusterctl_infra.plan.storage_model import StoragePlan

InterfaceKind = Literal["interface", "efa", "efa-only"]
DeadlineReason = Literal["runtime", "extend", "budget", "reservation", "capacity-block"]
ProblemLevel = Literal["error", "warning"]
PublicAddresses = Literal["automatic", "elastic", "none"]
Capacity = Literal["on-demand", "spot", "capacity-block", "reservation"]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something wrong with the configuration; an error stops `up`, a warning is shown."""

    level: ProblemLevel
    path: str
    """Where in cluster.yaml, e.g. `nodes` or `storage[0].size`; empty for the whole."""
    message: str


@dataclass(frozen=True, kw_only=True)
class InterfacePlan:
    """One network interface of a launch template."""

    network_card_index: int
    device_index: int
    kind: InterfaceKind
    private_ip: str | None
    """Only the primary interface (card 0, device 0) has one."""


@dataclass(frozen=True, kw_only=True)
class NetworkPlan:
    """The network: where nodes live and where services live."""

    vpc_cidr: str
    node_subnet_cidr: str
    slot_cidr: str
    """Slots' addresses: slot i has address base + i. The upper half of the node subnet, reserved for them; in an
    adopted subnet a range that was free."""
    service_subnet_cidr: str
    adopted_vpc_id: str | None
    adopted_node_subnet_id: str | None
    adopted_service_subnet_id: str | None
    is_looked_up: bool
    """Whether addresses and ranges are the real ones: an adopted network's are not known before it is looked up."""
    public_addresses: PublicAddresses
    ssh_cidrs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SlotPlan:
    """One place in the cluster; but for its rank it depends on its own number and on what all slots share, never on how
    many there are.
    """

    slot: int
    rank: int
    """Its number, unless the ranks were ordered by topology."""
    name: str
    private_ip: str
    interfaces: tuple[InterfacePlan, ...]
    tags: Mapping[str, str]
    host_public_key: str
    """`ssh-ed25519 AAAA…` as in known_hosts; derived from the seed."""
    replacement_trigger: str
    """Everything whose change makes a new machine necessary, as JSON; compared as a whole."""


@dataclass(frozen=True, kw_only=True)
class PricePlan:
    """US dollars per hour; None is unknown and never 0."""

    node_usd_per_hour: float | None
    """For a spot machine, the most that it can cost."""
    nodes_usd_per_hour: float | None
    disks_usd_per_hour: float | None
    """The nodes' root disks."""
    addresses_usd_per_hour: float
    gateway_usd_per_hour: float | None
    """The NAT gateway of private nodes, without its charge for traffic."""
    storage_usd_per_hour: float | None
    total_usd_per_hour: float | None
    cap_node_usd_per_hour: float | None
    cap_total_usd_per_hour: float | None
    prices_dated: str
    """ISO date of the price snapshot."""
    spot: SpotPrice | None = None
    """None: the machines are not on spot capacity."""
    is_reserved: bool = True
    """Whether the cluster reserves places of its own for its nodes."""

    @property
    def reservation_tail_usd(self) -> float | None:
        """What AWS may bill at worst after the deadline, for the cluster's own reservation, which is empty by then.

        AWS ends it within an hour after its end date (EC2 API, CreateCapacityReservation, EndDate; 2026-11-21). Nothing
        is reserved for spot machines, and what was reserved before the cluster outlives it.
        """
        return self.nodes_usd_per_hour if self.is_reserved else 0.0


@dataclass(frozen=True, kw_only=True)
class DeadlinePlan:
    """When the cluster ends, and which cap or which end of its capacity decides that."""

    at: datetime
    reason: DeadlineReason
    """`extend`: its run time, moved by `clusterctl extend`."""
    runtime_at: datetime
    """When the run time is over, moved or not."""
    ceiling_at: datetime | None
    """When the capacity that the cluster uses ends, whatever the caps say; None: it has no end."""
    budget_at: datetime | None
    budget_usd: float | None


@dataclass(frozen=True, kw_only=True)
class ClusterPlan:
    """Everything that a configuration means."""

    name: str
    cluster_id: str
    run: int
    started_at: datetime
    """The start of this run; UTC."""
    owner: str
    region: str
    zone: str
    """Ends with `?` while it is not chosen: the first run does that."""
    image_id: str
    instance_type: str
    gpu_name: str | None
    """As people say it: `H100 80GB`; None without GPUs."""
    gpus_per_node: int
    placement: Literal["cluster", "none"]
    capacity: Capacity
    reservation_id: str | None
    """The reservation or block that exists and is used; None: the cluster has its own, or none."""
    placement_group: str | None
    """The group that `reservation_id` is in; None: the cluster has its own group, or none."""
    interface_layout: tuple[tuple[int, int, InterfaceKind], ...]
    """(network card, device, kind) of every node's interfaces, also when there are no slots."""
    slots: tuple[SlotPlan, ...]
    network: NetworkPlan
    storage: tuple[StoragePlan, ...]
    """The mounts; for a cluster that is down, only those that are kept."""
    mount_clients: ScriptPlan | None
    """What nodes run before they mount, to install what the mounts need; None: nothing."""
    birth: str
    """What machines made now take on at birth alone: `replaceable.birth_text`."""
    tags: Mapping[str, str]
    price: PricePlan
    deadline: DeadlinePlan
    user_data_bytes: int
    """The size for the highest slot, raw after gzip; the limit is 16,384."""
    delivered_scripts: tuple[str, ...]
    """The scripts that user-data has no room for: `clusterctl up` brings them over SSH."""
    problems: tuple[Problem, ...]

    @property
    def chosen_zone(self) -> str | None:
        """The zone; None while it is still to be chosen, at birth."""
        return None if self.zone.endswith("?") else self.zone
