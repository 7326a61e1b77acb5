"""Configurations and identities that the plan's tests share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any  # a configuration as YAML gives it

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.identity import Identity
from clusterctl_infra.ledger import Ledger
from clusterctl_infra.plan.model import ClusterPlan
from clusterctl_infra.plan.planner import plan

CATALOG = load_catalog()
BORN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
IDENTITY = Identity(
    cluster_id="0123456789ab",
    started_at=BORN,
    run=1,
    owner="ada",
    image_id="ami-0123456789abcdef0",
    zone="us-west-2b",
    seed=bytes(range(32)),
)


def a_config(**changes: Any) -> ClusterConfig:
    """Four p5 nodes that only one office reaches, with changes."""
    return ClusterConfig.model_validate(
        {
            "name": "train",
            "region": "us-west-2",
            "nodes": 4,
            "instance_type": "p5.48xlarge",
            "access": {"mode": "public", "ssh_from": ["203.0.113.7/32"]},
            **changes,
        }
    )


def a_plan(
    *,
    identity: Identity = IDENTITY,
    ledger: Ledger | None = None,
    now: datetime = BORN,
    down: bool = False,
    kept: frozenset[str] | None = None,
    until: datetime | None = None,
    **changes: Any,
) -> ClusterPlan:
    """The plan of `a_config(**changes)`."""
    return plan(
        a_config(**changes),
        CATALOG,
        identity=identity,
        ledger=Ledger() if ledger is None else ledger,
        now=now,
        down=down,
        kept=kept,
        until=until,
    )


def problems_of(made: ClusterPlan, level: str = "error") -> dict[str, str]:
    """Path → message of the plan's problems of a level."""
    return {problem.path: problem.message for problem in made.problems if problem.level == level}
