"""The alarms of a cluster that AWS has in state ALARM, because what ends the cluster at its deadline has failed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from clusterctl_infra.names import guard_name

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.refusal import aws_errors


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """A CloudWatch alarm that is in the state ALARM."""

    name: str
    means: str
    """The alarm's own description."""
    since: datetime


def alarms_on(clients: Clients, cluster_id: str) -> tuple[Alarm, ...]:
    """The cluster's alarms in state ALARM, by name. Raises CloudError."""
    with aws_errors(f"asking for the alarms of {cluster_id}"):
        pages = clients.cloudwatch.get_paginator("describe_alarms").paginate(AlarmNamePrefix=guard_name(cluster_id))
        rows = [row for page in pages for row in page["MetricAlarms"] if row["StateValue"] == "ALARM"]
    found = (
        Alarm(
            name=row["AlarmName"],
            means=str(row.get("AlarmDescription") or row["MetricName"]).removeprefix("clusterctl: "),
            since=row["StateUpdatedTimestamp"],
        )
        for row in rows
    )
    return tuple(sorted(found, key=lambda alarm: alarm.name))
