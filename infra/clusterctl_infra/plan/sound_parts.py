"""The plan's rules for a configuration that is only partly sound, so that all problems are reported at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.problems import ConfigProblem, path_text
from clusterctl_infra.config.sound_parts import Unsound, is_sound
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.identity import stand_in_identity
from clusterctl_infra.ledger import Ledger
from clusterctl_infra.plan.planner import errors_of, plan

MACHINE = ("region", "gpus", "instance_type", "fabric")
"""The keys that decide the nodes' type, and so their price."""
STAND_IN_MACHINE: Mapping[str, object] = {
    "region": "us-west-2",
    "zone": None,
    "gpus": None,
    "instance_type": "p5.48xlarge",
    "fabric": "auto",
    "placement": "cluster",
    "storage": (),
    "reservation": None,
    "capacity_block": None,
}
"""Stands in for these keys where the type is not known, so that rules which do not depend on it can be asked."""
NEEDS: Mapping[str, tuple[str, ...]] = {
    "network.node_subnet_cidr": ("network", "nodes"),
    "access.ssh_from": ("access.ssh_from", "access.mode"),
    "fabric": MACHINE,
    "placement": ("placement", *MACHINE),
    "capacity": ("capacity", "reservation", "capacity_block", *MACHINE),
    "storage": ("storage", "network", *MACHINE),
    "caps.price_usd_per_hour": ("caps.price_usd_per_hour", "capacity", *MACHINE),
    "caps.total_usd_per_hour": ("caps.total_usd_per_hour", "capacity", "nodes", "access.mode", "storage", *MACHINE),
    "caps.budget_usd": ("caps.budget_usd", "caps.runtime", "capacity", "nodes", "access.mode", "storage", *MACHINE),
    "": ("name", "nodes", "network", "access", "env", "packages", "scripts", "storage", "imds", *MACHINE),
}
"""Path of an error → the parts that have to be sound for it to be true. Other paths' errors are about living clusters.
"""


def problems_of_sound_parts(
    config: ClusterConfig, unsound: Unsound, *, catalog: Catalog, now: datetime
) -> tuple[ConfigProblem, ...]:
    """The errors of the plan that remain whatever replaces the unsound values; none if there is no plan."""
    if not _are_sound(MACHINE, unsound):
        config = config.model_copy(update=dict(STAND_IN_MACHINE))
    identity = stand_in_identity(owner="", image_id=None, zone=config.zone, region=config.region, now=now)
    try:
        planned = plan(config, catalog, identity=identity, ledger=Ledger(), now=now)
    except ConfigError:  # what is left breaks rules because of what was taken out
        return ()
    return tuple(
        each
        for each in errors_of(planned)
        if (path := path_text(each.path)) in NEEDS and _are_sound(NEEDS[path], unsound)
    )


def _are_sound(parts: tuple[str, ...], unsound: Unsound) -> bool:
    return all(is_sound(tuple(part.split(".")), unsound) for part in parts)
