"""What a rule on a plan may look at, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from clusterctl_infra.adopted import AdoptedCapacity, AdoptedNetwork
from clusterctl_infra.catalog.instance import InstanceType
from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.ledger import Ledger
from clusterctl_infra.plan.model import ClusterPlan, Problem


@dataclass(frozen=True, kw_only=True)
class Case:
    """A configuration with its plan, at an instant."""

    config: ClusterConfig
    plan: ClusterPlan
    catalog: Catalog
    instance_type: InstanceType
    now: datetime
    user_data_refusal: str | None
    ledger: Ledger
    """What the cluster has cost so far; empty before its birth."""
    adopted_capacity: AdoptedCapacity | None
    """The reservation or block that the configuration names; None: not looked up."""
    adopted_network: AdoptedNetwork | None
    """The existing network that the configuration names; None: not looked up."""


def error(path: str, message: str) -> Problem:
    """A problem that stops `up`."""
    return Problem(level="error", path=path, message=message)


def warning(path: str, message: str) -> Problem:
    """A problem that is only shown."""
    return Problem(level="warning", path=path, message=message)
