"""The facts that running nodes get besides members and deadline, as the Membership holds them. Pure."""

from __future__ import annotations

import hashlib
import json

from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.plan.model import ClusterPlan


def ordered_ranks(plan: ClusterPlan) -> list[int]:
    """The rank of each slot; empty if each rank equals its slot."""
    ranks = [slot.rank for slot in plan.slots]
    return [] if ranks == sorted(ranks) else ranks


def live_facts_hash(config: ClusterConfig) -> str:
    """A hash of the facts that running nodes get besides members and deadline; no value can be read from it."""
    facts: dict[str, object] = {"env": dict(config.env), "authorized_keys": list(config.access.authorized_keys)}
    # Each rule is left out where it is not set, so that the hash of a cluster without it stays what it was.
    if config.caps.dead_man is not None:
        facts["dead_man_s"] = config.caps.dead_man.total_seconds()
    if config.caps.idle is not None:
        facts["idle_s"] = int(config.caps.idle.total_seconds())
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
