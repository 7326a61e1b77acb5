"""`plan()`: everything that a configuration means. Pure: no files, clock, network or engine."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from clusterctl_bootstrap.render import UserDataTooLarge

from clusterctl_infra.adopted import NOTHING_ADOPTED, Adopted, AdoptedCapacity, AdoptedNetwork
from clusterctl_infra.catalog.instance import InstanceType
from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.problems import ConfigProblem, path_of
from clusterctl_infra.config.rules import broken_rules
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.identity import Identity
from clusterctl_infra.ledger import Ledger
from clusterctl_infra.names import DEADLINE_TAG, ID_TAG, NAME_TAG, NO_DEADLINE, OWNER_TAG
from clusterctl_infra.plan.case import Case
from clusterctl_infra.plan.deadline import deadline_plan
from clusterctl_infra.plan.model import ClusterPlan, DeadlinePlan, PricePlan
from clusterctl_infra.plan.mount_clients import clients_script
from clusterctl_infra.plan.network import network_plan
from clusterctl_infra.plan.nodes import born_with, delivered_scripts, user_data
from clusterctl_infra.plan.price import price_plan
from clusterctl_infra.plan.problems import plan_problems
from clusterctl_infra.plan.slots import interface_layout, slot_plans
from clusterctl_infra.plan.storage import kept_storage, storage_plans
from clusterctl_infra.plan.storage_model import StoragePlan
from clusterctl_infra.ranks import kept_ranks


def plan(
    config: ClusterConfig,
    catalog: Catalog,
    *,
    identity: Identity,
    ledger: Ledger,
    now: datetime,
    down: bool = False,
    kept: frozenset[str] | None = None,
    slot_ranks: Sequence[int] = (),
    until: datetime | None = None,
    adopted: Adopted = NOTHING_ADOPTED,
) -> ClusterPlan:
    """What the configuration means, with its problems; `down`: the same cluster with zero nodes.

    `slot_ranks`: the rank of each slot as it was ordered before; without it, each rank equals its slot. `until`: the
    end of the run time, if it was moved. `adopted`: what exists and is used, as it was looked up.

    A cluster that is down has only the storage that holds data, and of that only the mounts in `kept` (None: all of
    it): what did not exist when the nodes went is not made just to be kept.

    Raises ConfigError when the configuration breaks its own rules, so that no plan can be made of it: a file that was
    read by `load_cluster` never does.
    """
    _refuse_broken(config, catalog)
    given = _Given(
        config=config,
        catalog=catalog,
        instance_type=_instance_type(config, catalog),
        identity=identity,
        ledger=ledger,
        now=now,
        until=until,
        adopted=adopted,
    )
    asked = storage_plans(config, catalog)
    storage = kept_storage(asked, kept) if down else asked
    return _judged(given, _draft(given, storage, ranks=_ranks(config, slot_ranks, 0 if down else config.nodes)))


def adopted_capacity(config: ClusterConfig, adopted: Adopted) -> AdoptedCapacity | None:
    """What was looked up for the reservation or block that the configuration names; None: nothing, or for another."""
    found = adopted.capacity
    return found if found is not None and found.reservation_id == config.reservation_id else None


def adopted_network(config: ClusterConfig, adopted: Adopted) -> AdoptedNetwork | None:
    """What was looked up for the network that the configuration names; None: nothing, or for another."""
    found, named = adopted.network, config.network.adopt
    if found is None or named is None:
        return None
    return found if (found.vpc_id, found.subnet_id) == (named.vpc_id, named.node_subnet_id) else None


def errors_of(plan: ClusterPlan) -> tuple[ConfigProblem, ...]:
    """The plan's errors, each with its place in the configuration; warnings are left out."""
    errors = (problem for problem in plan.problems if problem.level == "error")
    return tuple(ConfigProblem(path=path_of(each.path), message=each.message) for each in errors)


def refuse_errors(plan: ClusterPlan) -> None:
    """Raises ConfigError with every error of the plan, for a configuration that is in no file; warnings pass."""
    _refuse(plan.name, errors_of(plan))


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Given:
    """The inputs of a plan."""

    config: ClusterConfig
    catalog: Catalog
    instance_type: InstanceType
    identity: Identity
    ledger: Ledger
    now: datetime
    until: datetime | None
    adopted: Adopted


def _ranks(config: ClusterConfig, slot_ranks: Sequence[int], nodes: int) -> Sequence[int]:
    return kept_ranks(slot_ranks, nodes=nodes) if config.ranks == "topology" else range(nodes)


def _draft(given: _Given, storage: tuple[StoragePlan, ...], *, ranks: Sequence[int]) -> ClusterPlan:
    """The plan before it is searched for problems; it has a node for each rank."""
    config, identity, instance_type, nodes = given.config, given.identity, given.instance_type, len(ranks)
    layout = tuple(interface_layout(config, instance_type, identity))
    capacity = adopted_capacity(config, given.adopted)
    network = network_plan(config, interfaces_per_node=len(layout), found=adopted_network(config, given.adopted))
    price = price_plan(config, given.catalog, network, storage, instance_type=instance_type.name, nodes=nodes)
    deadline = _deadline(given, price, nodes=nodes)
    tags = _tags(config, identity, deadline_at=deadline.at if nodes else None)
    clients = clients_script(config.image, given.catalog, storage, architecture=instance_type.architecture)
    return ClusterPlan(
        name=config.name,
        cluster_id=identity.cluster_id,
        run=identity.run,
        started_at=identity.started_at,
        owner=identity.owner,
        region=config.region,
        zone=identity.zone,
        image_id=identity.image_id,
        instance_type=instance_type.name,
        gpu_name=instance_type.gpu_name,
        gpus_per_node=instance_type.gpu_count,
        placement=config.grouping,
        capacity=config.market,
        reservation_id=config.reservation_id,
        placement_group=None if capacity is None else capacity.placement_group,
        interface_layout=layout,
        slots=slot_plans(config, instance_type, network, identity, tags, ranks=ranks),
        network=network,
        storage=storage,
        mount_clients=clients,
        birth=born_with(config, network, price, clients),
        tags=tags,
        price=price,
        deadline=deadline,
        user_data_bytes=0,
        delivered_scripts=(),
        problems=(),
    )


def _deadline(given: _Given, price: PricePlan, *, nodes: int) -> DeadlinePlan:
    capacity = adopted_capacity(given.config, given.adopted)
    return deadline_plan(
        given.config,
        price,
        given.identity,
        given.ledger,
        now=given.now,
        nodes=nodes,
        until=given.until,
        capacity_ends_at=None if capacity is None else capacity.ends_at,
    )


def _tags(config: ClusterConfig, identity: Identity, *, deadline_at: datetime | None) -> dict[str, str]:
    """The tags of everything that the cluster owns; a person's own tags cannot take their place.

    `deadline_at`: None while it has no nodes.
    """
    written = NO_DEADLINE if deadline_at is None else deadline_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ours: Mapping[str, str] = {
        ID_TAG: identity.cluster_id,
        NAME_TAG: config.name,
        OWNER_TAG: identity.owner,
        DEADLINE_TAG: written,
    }
    return {**config.tags, **ours}


def _judged(given: _Given, draft: ClusterPlan) -> ClusterPlan:
    """The plan with its problems, and with the user-data size and the delivered scripts of its highest slot."""
    config, refusal = given.config, None
    try:
        size = len(user_data(config, draft, given.identity, config.nodes - 1))
    except UserDataTooLarge as e:
        size, refusal = e.size_bytes, str(e)
    delivered = delivered_scripts(config, draft, given.identity, config.nodes - 1)
    sized = dataclasses.replace(draft, user_data_bytes=size, delivered_scripts=delivered)
    case = Case(
        config=config,
        plan=sized,
        catalog=given.catalog,
        instance_type=given.instance_type,
        now=given.now,
        user_data_refusal=refusal,
        ledger=given.ledger,
        adopted_capacity=adopted_capacity(config, given.adopted),
        adopted_network=adopted_network(config, given.adopted),
    )
    return dataclasses.replace(sized, problems=plan_problems(case))


def _instance_type(config: ClusterConfig, catalog: Catalog) -> InstanceType:
    name = config.instance_type_name(catalog)
    found = catalog.instance_type(name)
    if found is None:
        raise ConfigError(f"cluster {config.name}: the catalog has no instance type {name}")
    return found


def _refuse_broken(config: ClusterConfig, catalog: Catalog) -> None:
    _refuse(config.name, broken_rules(config, catalog))


def _refuse(name: str, problems: Sequence[ConfigProblem]) -> None:
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = [f"  {problem.text()}" for problem in problems]
        raise ConfigError(f"cluster {name}: {count}, nothing was changed", problems=lines)
