"""The `caps:` part of cluster.yaml: the most that a cluster may cost, and when it ends."""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel, Field

from clusterctl_infra.config.fields import ClusterPrice, Dollars, Duration, NodePrice
from clusterctl_infra.config.storage import STRICT


class CapsConfig(BaseModel):
    """Limits: each ends in a refusal beforehand, or in a deadline."""

    model_config = STRICT
    price_usd_per_hour: NodePrice | None = Field(
        default=None,
        description="Per node. A more expensive node is refused; for spot machines it is the most that AWS may bill.",
    )
    total_usd_per_hour: ClusterPrice | None = Field(
        default=None,
        description="The whole cluster: nodes with their root disks, public addresses, the NAT gateway, storage. A "
        "more expensive cluster is refused.",
    )
    budget_usd: Dollars | None = Field(
        default=None,
        description="The whole cluster, over all its runs. When it is spent, the cluster ends, whatever `runtime` "
        "says.",
    )
    runtime: Duration = Field(
        default=timedelta(hours=24),
        description="Per run, from its creation; at most 30d. There is always a limit, so a forgotten cluster costs a "
        "day and not a month.",
        json_schema_extra={"default": "24h"},
    )
    dead_man: Duration | None = Field(
        default=None,
        description=(
            "A node ends if slot 0 has not answered it for this long. Slot 0 ends if it has had no majority of the "
            "nodes for this long, and has AWS end the rest. If half of the nodes or more have lost slot 0, the lowest "
            "of them has AWS end the cluster; if fewer have, AWS ends it only if slot 0 has no machine. Left out: "
            "none of this, because a short network failure would end trainings that could go on."
        ),
        examples=["30m"],
    )
    idle: Duration | None = Field(
        default=None,
        description="The cluster ends when no node has been in use for this long. Left out: it does not, because a "
        "cluster that is prepared today and used tomorrow would be gone.",
        examples=["45m"],
    )
