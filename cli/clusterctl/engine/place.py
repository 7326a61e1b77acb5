"""Where a cluster is: its region and its network's addresses, which are decided when it is made."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.errors import ConfigError, UsageError
from clusterctl_infra.names import IDENTITY_TYPE

from clusterctl.engine.state import StackState
from clusterctl.views.quantities import count

NETWORK = "clusterctl:infra:Network$aws:ec2/"
"""In the URN of everything that the cluster's network is made of; a person's own program may have others."""


def refuse_other_region(state: StackState, region: str) -> None:
    """Raises UsageError when the cluster is in another region than cluster.yaml says.

    Asked there, AWS would know none of its machines, and the engine would make all of it anew, file systems too.
    """
    identity = state.find(IDENTITY_TYPE)
    zone = "" if identity is None else str(identity.outputs.get("zone") or "")
    if zone and not zone.startswith(region):
        raise UsageError(
            f"this cluster is in {zone}, and cluster.yaml says region: {region}: nothing was changed; write its own "
            "region back; a cluster in another region is another one, with a folder of its own"
        )


def refuse_other_network(state: StackState, config: ClusterConfig, *, source: str) -> None:
    """Raises ConfigError when the network would be made anew below living machines and file systems."""
    problems = list(_moved(state, config))
    if problems:
        raise ConfigError(
            f"{source}: {count(len(problems), 'change')} would make the network anew, nothing was changed",
            problems=[f"  {problem}" for problem in problems],
            hint="clusterctl down --all",
        )


def _moved(state: StackState, config: ClusterConfig) -> Iterator[str]:
    network = config.network
    meant = {
        ("vpc:Vpc", "-vpc"): ("vpc_cidr", str(network.vpc_cidr)),
        ("subnet:Subnet", "-services"): ("service_subnet_cidr", str(network.service_subnet_cidr)),
    }
    for (type, end), (field, cidr) in meant.items():
        for one in state.of_type(f"aws:ec2/{type}"):
            if NETWORK in one.urn and one.urn.endswith(end) and one.inputs.get("cidrBlock") not in (None, cidr):
                was = one.inputs["cidrBlock"]
                yield (
                    f"network.{field}: {was} → {cidr}: decided when the cluster is made, for what lives in it cannot "
                    "move: write it back, or end the cluster, data and all, first"
                )
