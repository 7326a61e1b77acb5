"""What cluster.yaml may say of the most that a cluster costs, and of when it ends."""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel, Field

from clusterctl_infra.config.fields import ClusterPrice, Dollars, Duration, NodePrice
from clusterctl_infra.config.storage import STRICT


class CapsConfig(BaseModel):
    """Limits that end in a refusal before, or in a deadline."""

    model_config = STRICT
    price_usd_per_hour: NodePrice | None = Field(
        default=None,
        description="Per node. A dearer node is refused; of spot machines it is the most that AWS may bill.",
    )
    total_usd_per_hour: ClusterPrice | None = Field(
        default=None,
        description=(
            "The whole cluster: nodes with their root disks, public addresses, the NAT gateway, storage. A dearer "
            "cluster is refused."
        ),
    )
    budget_usd: Dollars | None = Field(
        default=None, description="The whole cluster, ever. Spent: the cluster ends, whatever `runtime` says."
    )
    runtime: Duration = Field(
        default=timedelta(hours=24),
        description="Per run, from creation. There is no unlimited: a forgotten cluster costs one day. At most 30d.",
        json_schema_extra={"default": "24h"},
    )
    dead_man: Duration | None = Field(
        default=None,
        description=(
            "A node that slot 0 has not answered for this long ends, and so does slot 0 without a majority, which "
            "then has AWS end the rest. So does the lowest of those that lost slot 0, if they are half of the nodes or "
            "more; fewer have it do so if slot 0 has no machine any more. Left out: none does, because a network that "
            "fails for a while would end trainings that may go on."
        ),
        examples=["30m"],
    )
    idle: Duration | None = Field(
        default=None,
        description=(
            "The cluster ends when no node has shown a sign of life for this long. Left out: it does not, because one "
            "that is prepared today and used tomorrow would be gone."
        ),
        examples=["45m"],
    )
