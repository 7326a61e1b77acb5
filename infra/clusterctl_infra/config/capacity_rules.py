"""Rules about where machines come from, and about a network that exists: what cannot be asked for together."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_infra.catalog.gpus import GpuSpecUnreadable
from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.block_search import MOST_INSTANCES, BlockConfig
from clusterctl_infra.config.document import Path
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.problems import shown

OWN_RANGES = ("vpc_cidr", "node_subnet_cidr", "service_subnet_cidr")
_KEYS = {"reservation": "reservation", "capacity-block": "capacity_block"}
"""Value of `capacity` → the key that names the reservation or block."""


def capacity_has_one_source(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    """Machines come from one source: on demand, spot, a reservation or a block; no key names another."""
    if config.reservation is not None and config.capacity_block is not None:
        yield (
            ("capacity_block",),
            f"{_block_words(config.capacity_block)}: reservation is written too; keep one of them",
        )
        return
    key = _KEYS.get(config.capacity)
    if key is not None and getattr(config, key) is None:
        yield ("capacity",), f"{shown(config.capacity)}: write which one, as {key}: cr-…, and leave capacity out"
    elif config.capacity != config.market and config.capacity != "on-demand":
        named = "capacity_block" if config.capacity_block is not None else "reservation"
        yield (
            ("capacity",),
            (
                f"{shown(config.capacity)}: {named} is written too, and its machines are not on {config.capacity}: "
                "keep one of them"
            ),
        )


def lists_are_for_on_demand(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    """A list of types is for machines on demand.

    Whether AWS has room for a type is found out by making a reservation, which tells nothing about spot machines; and a
    reservation that exists has its type already.
    """
    if not config.is_list or config.market == "on-demand":
        return
    key = "gpus" if config.gpus is not None else "instance_type"
    why = f"{config.reservation_id or 'a capacity block'} has its type: name that one"
    if config.market == "spot":
        why = "not built yet for spot machines, since no reservation tells whether AWS has room for them: name one"
    yield (key,), f"{shown(getattr(config, key))}: a list is for machines on demand; {why}"


def block_has_no_placement_group(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    """A capacity block takes no placement group: its machines are close to each other without one (EC2 User Guide,
    "Capacity Blocks for ML"; 2026-11).
    """
    if config.capacity_block is not None and "placement" in config.model_fields_set and config.placement == "cluster":
        yield (
            ("placement",),
            (
                "'cluster': AWS may find no room for a capacity block's machines in a placement group, and they stand "
                "close to each other without one; leave placement out"
            ),
        )


def searched_block_holds_nodes(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    """A block that is looked for has room for all nodes, and AWS sells such blocks of their type."""
    search = config.block_search
    if search is None or config.is_list:
        return
    path = ("capacity_block", "find")
    if search.nodes is not None and search.nodes < config.nodes:
        yield (*path, "nodes"), f"{shown(search.nodes)}: the cluster has {config.nodes}; leave nodes out"
    if (search.nodes or config.nodes) > MOST_INSTANCES:
        yield path, f"{search.nodes or config.nodes} nodes: AWS sells blocks of at most {MOST_INSTANCES} machines"
    row = config.instance_row(catalog)
    if row is None:
        return
    if "capacity-block" not in row.usage_classes:
        sold = ", ".join(each.name for each in catalog.types.values() if "capacity-block" in each.usage_classes)
        yield path, f"AWS sells no capacity blocks of {row.name}, only of {sold}"
    elif search.gpus is not None and row.name not in _types_with(search.gpus, catalog):
        yield (*path, "gpus"), f"{shown(search.gpus)}: the nodes are {row.name}, which has others; leave gpus out"


def adopted_network_has_its_ranges(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    """No ranges are written for a network that exists, which has its own."""
    if config.network.adopt is None:
        return
    for name in OWN_RANGES:
        if name in config.network.model_fields_set:
            yield (
                ("network", name),
                (
                    f"{shown(getattr(config.network, name))}: adopt is written too, and that network has ranges of its "
                    "own; keep one of them"
                ),
            )


def _block_words(block: BlockConfig) -> str:
    return "a block to be found" if block.id is None else shown(block.id)


def _types_with(gpus: str, catalog: Catalog) -> set[str]:
    try:
        return {row.name for row in catalog.for_gpus(gpus)}
    except GpuSpecUnreadable:
        return set()
