"""Rules between fields, and between fields and the catalog: one function each, in a table.

A rule looks at fields that are sound by themselves (`needs`), so one mistake is reported once.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.capacity_rules import (
    adopted_network_has_its_ranges,
    block_has_no_placement_group,
    capacity_has_one_source,
    lists_are_for_on_demand,
    searched_block_holds_nodes,
)
from clusterctl_infra.config.choice import check_instance_type, choose_by_gpus
from clusterctl_infra.config.document import Path
from clusterctl_infra.config.hooks import repeated_names
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.network import NetworkConfig
from clusterctl_infra.config.problems import ConfigProblem, shown
from clusterctl_infra.config.storage_rules import (
    bucket_keys_are_few,
    file_systems_differ,
    local_disks_are_there,
    mounts_are_few,
    mounts_differ,
    workflow_storage_is_mounted,
)
from clusterctl_infra.nearest import did_you_mean

VPC_PREFIXES = range(16, 29)
"""AWS takes networks and subnets of /16 … /28."""
RESERVED = tuple(ipaddress.IPv4Network(each) for each in ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3"))


@dataclass(frozen=True, kw_only=True)
class Rule:
    """`check` yields (path, sentence) for what is wrong; it runs when all of `needs` are sound."""

    needs: frozenset[str]
    check: Callable[[ClusterConfig, Catalog], Iterator[tuple[Path, str]]]


def broken_rules(config: ClusterConfig, catalog: Catalog, unsound: frozenset[str] = frozenset()) -> list[ConfigProblem]:
    """What is wrong with `config`; its fields in `unsound` are stand-ins and are not looked at."""
    return [
        ConfigProblem(path=path, message=message)
        for rule in RULES
        if not rule.needs & unsound
        for path, message in rule.check(config, catalog)
    ]


def is_zone_of(zone: str, region: str) -> bool:
    """Whether this is the name of an availability zone of the region."""
    return re.fullmatch(re.escape(region) + "[a-z]", zone) is not None


def one_of_gpus_and_type(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    if config.gpus is None and config.instance_type is None:
        yield (), "gpus or instance_type is missing: write gpus: h100:8, or instance_type: p5.48xlarge"
    if config.gpus is not None and config.instance_type is not None:
        yield ("instance_type",), f"{shown(config.instance_type)}: gpus is written too; keep one of them"


def region_exists(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    if config.region in catalog.regions():
        return
    if config.region[:-1] in catalog.regions() and config.region[-1].isalpha():
        yield (
            ("region",),
            f"{shown(config.region)}: a zone (did you mean region: {config.region[:-1]}, zone: {config.region}?)",
        )
        return
    near = did_you_mean(config.region, catalog.regions())
    yield ("region",), f"{shown(config.region)}: no AWS region{near or '; one is ' + catalog.regions()[-1]}"


def zone_is_in_region(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    if config.zone is None or is_zone_of(config.zone, config.region):
        return
    yield ("zone",), f"{shown(config.zone)}: not a zone of {config.region}, such as {config.region}b"


def gpus_exist(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    for path, spec in _entries("gpus", config.gpus):
        try:
            choose_by_gpus(catalog, spec, region=None)
        except ValueError as e:
            yield path, f"{shown(spec)}: {e}"


def instance_type_exists(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    for path, name in _entries("instance_type", config.instance_type):
        try:
            check_instance_type(catalog, name, region=None)
        except ValueError as e:
            yield path, f"{shown(name)}: {e}"


def offered_in_region(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    """The region offers the types. Only what the rules above let through is looked at: types and regions that exist."""
    if config.region not in catalog.regions():
        return
    for path, name in _entries("instance_type", config.instance_type):
        if catalog.instance_type(name) is not None and not catalog.is_offered(name, config.region):
            yield path, f"{shown(name)}: {_refusal(partial(check_instance_type, catalog, name, region=config.region))}"
    for path, spec in _entries("gpus", config.gpus):
        if not _refusal(partial(choose_by_gpus, catalog, spec, region=None)):
            refusal = _refusal(partial(choose_by_gpus, catalog, spec, region=config.region, fabric=config.fabric))
            if refusal:
                yield path, f"{shown(spec)}: {refusal}"


def fabric_is_there(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    for _, name in _entries("instance_type", config.instance_type):
        row = catalog.instance_type(name)
        if config.fabric == "required" and row is not None and not row.has_efa:
            yield ("fabric",), f"'required': {name} has no EFA; choose a type that has, or fabric: none"


def placement_is_possible(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    for _, name in _entries("instance_type", config.instance_type):
        row = catalog.instance_type(name)
        if config.grouping == "cluster" and row is not None and not row.placement_group_cluster:
            yield (
                ("placement",),
                f"'cluster': AWS takes no {name} into a cluster placement group; write placement: none",
            )


def image_exists(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    if config.image in catalog.images or re.fullmatch(r"ami-([0-9a-f]{8}|[0-9a-f]{17})", config.image):
        return
    if config.image.startswith("ami-"):
        yield ("image",), f"{shown(config.image)}: an AMI id is ami- and 8 or 17 hex digits"
        return
    names = ", ".join(catalog.images)
    near = did_you_mean(config.image, catalog.images)
    yield ("image",), f"{shown(config.image)}: no image of that name{near}; known are {names}, or an AMI id"


def image_fits_architecture(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    if config.image not in catalog.images:
        return
    for row in config.instance_rows(catalog):
        if catalog.image_parameter(config.image, row.architecture) is not None:
            continue
        fitting = [name for name in catalog.images if catalog.image_parameter(name, row.architecture) is not None]
        yield (
            ("image",),
            f"{shown(config.image)}: not made for {row.architecture} ({row.name}); {', '.join(fitting)} are",
        )
        return


def keys_are_in_the_region(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    """The KMS key is in the cluster's region: AWS looks for it nowhere else. A bucket may be in another region, with a
    key of its own.
    """
    if config.kms_key is not None and (where := config.kms_key.split(":")[3]) != config.region:
        yield ("kms_key",), f"{shown(config.kms_key)}: a key of {where}, and the cluster is in {config.region}"


def networks_fit(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    network = config.network
    ranges = {name: ipaddress.IPv4Network(getattr(network, name)) for name in _RANGES}
    for name, cidr in ranges.items():
        if cidr.prefixlen not in VPC_PREFIXES:
            yield ("network", name), f"{shown(str(cidr))}: AWS takes /16 to /28"
        if any(cidr.overlaps(reserved) for reserved in RESERVED):
            yield ("network", name), f"{shown(str(cidr))}: reserved addresses; take one inside 10.0.0.0/8"
    yield from _inside(network, ranges)


def _inside(network: NetworkConfig, ranges: dict[str, ipaddress.IPv4Network]) -> Iterator[tuple[Path, str]]:
    vpc, nodes, services = (ranges[name] for name in _RANGES)
    for name in _RANGES[1:]:
        if not ranges[name].subnet_of(vpc):
            yield ("network", name), f"{shown(str(ranges[name]))}: not inside vpc_cidr {network.vpc_cidr}"
    if nodes.overlaps(services):
        yield ("network", "service_subnet_cidr"), f"{shown(str(services))}: overlaps node_subnet_cidr {nodes}"


def ssh_networks_differ(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    """No network is written twice: AWS refuses a second rule for it (InvalidPermission.Duplicate)."""
    for index, cidr in enumerate(config.access.ssh_from):
        if cidr in config.access.ssh_from[:index]:
            yield ("access", "ssh_from", index), f"{shown(cidr)}: written twice"


def bastion_is_for_private(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    access = config.access
    if access.bastion is None:
        return
    if access.mode == "public":
        yield ("access", "bastion"), f"{shown(access.bastion)}: public nodes are reached directly; write mode: private"
    elif not access.ssh_from:
        yield (
            ("access", "ssh_from"),
            f"empty, so {access.bastion} is not let in: write the address it has towards the nodes, as [10.9.0.5/32]",
        )
    elif config.network.adopt is None:
        yield (
            ("access", "bastion"),
            (
                f"{shown(access.bastion)}: it cannot reach into a network that is made new; write its own network as "
                "network: {adopt: …}, or leave bastion out: Session Manager needs no way in"
            ),
        )


def scripts_differ(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    for index, sentence in repeated_names(config.scripts):
        yield ("scripts", index), sentence


_RANGES = ("vpc_cidr", "node_subnet_cidr", "service_subnet_cidr")


def _entries(field: str, value: str | tuple[str, ...] | None) -> list[tuple[Path, str]]:
    if value is None:
        return []
    if isinstance(value, str):
        return [((field,), value)]
    return [((field, index), each) for index, each in enumerate(value)]


def _refusal(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except ValueError as e:
        return str(e)
    return ""


def _rule(check: Callable[[ClusterConfig, Catalog], Iterator[tuple[Path, str]]], *needs: str) -> Rule:
    return Rule(needs=frozenset(needs), check=check)


RULES = (
    _rule(one_of_gpus_and_type, "gpus", "instance_type"),
    _rule(region_exists, "region"),
    _rule(zone_is_in_region, "zone", "region"),
    _rule(gpus_exist, "gpus"),
    _rule(instance_type_exists, "instance_type"),
    _rule(offered_in_region, "region", "gpus", "instance_type", "fabric"),
    _rule(fabric_is_there, "fabric", "instance_type"),
    _rule(placement_is_possible, "placement", "instance_type", "capacity_block"),
    _rule(image_exists, "image"),
    _rule(image_fits_architecture, "image", "region", "gpus", "instance_type", "fabric"),
    _rule(capacity_has_one_source, "capacity", "reservation", "capacity_block"),
    _rule(lists_are_for_on_demand, "gpus", "instance_type", "capacity", "reservation", "capacity_block"),
    _rule(block_has_no_placement_group, "capacity_block", "placement"),
    _rule(searched_block_holds_nodes, "capacity_block", "nodes", "region", "gpus", "instance_type", "fabric"),
    _rule(adopted_network_has_its_ranges, "network"),
    _rule(keys_are_in_the_region, "kms_key", "region"),
    _rule(networks_fit, "network"),
    _rule(ssh_networks_differ, "access"),
    _rule(bastion_is_for_private, "access", "network"),
    _rule(mounts_are_few, "storage"),
    _rule(bucket_keys_are_few, "storage"),
    _rule(mounts_differ, "storage"),
    _rule(file_systems_differ, "storage"),
    _rule(workflow_storage_is_mounted, "storage", "workflow_storage"),
    _rule(local_disks_are_there, "storage", "region", "gpus", "instance_type", "fabric"),
    _rule(scripts_differ, "scripts"),
)
