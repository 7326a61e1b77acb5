"""The clusters of examples/clusters, and the resources that each one's program asks the engine for."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any  # what a program exports

from clusterctl_infra.adopted import Adopted, AdoptedCapacity, AdoptedNetwork
from clusterctl_infra.catalog.instance import NEWEST_LAYOUT
from clusterctl_infra.components.cluster import Cluster, ClusterArgs
from clusterctl_infra.config.load import load_cluster
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.stack import StackSettings
from clusterctl_infra.ledger import Ledger

from tests.unit.infra.components.recorded_program import NOW, Recording, record, short

ROOT = Path(__file__).parents[4]
EXAMPLES = ROOT / "examples" / "clusters"
GOLDEN_EXAMPLES = ROOT / "tests" / "golden" / "examples"
NAMES = tuple(sorted(folder.parent.name for folder in EXAMPLES.glob("*/Pulumi.yaml")))
HOSTS = "two-infiniband-hosts"
"""The example for which Pulumi makes nothing: its golden list names the files that a host is given."""
ZONE = "us-west-2c"


def golden_file(name: str) -> Path:
    """Where the resources of one example are written down."""
    return GOLDEN_EXAMPLES / f"{name}.txt"


def config_of(name: str) -> ClusterConfig:
    """An example's configuration; raises ConfigError with all that is wrong with it."""
    return load_cluster(EXAMPLES / name / "cluster.yaml").model_copy(update={"owner": "ada"})


def recorded(name: str) -> Recording:
    """What an example's program asks for, where AWS has what it uses."""
    return recorded_config(config_of(name))


def recorded_config(config: ClusterConfig) -> Recording:
    """What the program of this configuration asks for, where AWS has what it uses."""
    settings = StackSettings(
        overrides={}, ledger=Ledger(), down=False, run=1, layout=NEWEST_LAYOUT, adopted=adopted_by(config)
    )

    def program() -> Any:
        return Cluster(config.name, ClusterArgs(config=config, settings=settings, clock=lambda: NOW)).inventory

    return record(program)


def adopted_by(config: ClusterConfig) -> Adopted:
    """What exists and is used, as an `up` would have looked it up."""
    adopt, reservation = config.network.adopt, config.reservation_id
    network = None
    if adopt is not None:
        network = AdoptedNetwork(
            vpc_id=adopt.vpc_id,
            subnet_id=adopt.node_subnet_id,
            subnet_cidr="172.31.16.0/24",
            zone=ZONE,
            slot_cidr="172.31.16.128/25",
        )
    capacity = None
    if reservation is not None:
        capacity = AdoptedCapacity(
            reservation_id=reservation,
            instance_type=str(config.instance_type),
            zone=ZONE,
            ends_at=NOW + timedelta(days=1) if config.market == "capacity-block" else None,
            placement_group=None,
        )
    return Adopted(capacity=capacity, network=network)


def listed(recording: Recording) -> str:
    """One line for each resource, sorted: its type and name, then what it waits for."""
    rows = (f"{short(row.urn)} < {_waits_for(row.request.dependencies)}".rstrip(" <") for row in recording.resources)
    return "\n".join(sorted(rows)) + "\n"


def _waits_for(urns: Any) -> str:
    return ", ".join(sorted({short(urn) for urn in urns}))
