"""The resource types that end a cluster at its deadline: schedule, state machine and alarms, found by the cluster's id
in their names.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_infra.names import GUARD_PREFIX, ID_TAG, guard_name, guarded_id, id_in_name

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.resource import CloudResource, ResourceType


def _schedules(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    prefix = GUARD_PREFIX if cluster_id is None else guard_name(cluster_id)
    for page in clients.scheduler.get_paginator("list_schedules").paginate(NamePrefix=prefix):
        for row in page["Schedules"]:
            found_id = guarded_id(row["Name"])
            if found_id is not None and cluster_id in (None, found_id):
                yield CloudResource(
                    kind="schedule",
                    id=f"{row['GroupName']}/{row['Name']}",
                    created_at=row.get("CreationDate"),
                    tags={ID_TAG: found_id},
                )


def _delete_schedule(clients: Clients, found: CloudResource) -> None:
    group, _, name = found.id.partition("/")
    clients.scheduler.delete_schedule(GroupName=group, Name=name)


def state_machines(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    """The cluster's state machine, if it has one; without an id, those of every cluster."""
    for page in clients.sfn.get_paginator("list_state_machines").paginate():
        for row in page["stateMachines"]:
            found_id = guarded_id(row["name"])
            if found_id is not None and cluster_id in (None, found_id):
                yield CloudResource(
                    kind="state machine",
                    id=row["stateMachineArn"],
                    created_at=row.get("creationDate"),
                    tags={ID_TAG: found_id},
                )


def _delete_machine(clients: Clients, found: CloudResource) -> None:
    clients.sfn.delete_state_machine(stateMachineArn=found.id)


def _alarms(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    prefix = GUARD_PREFIX if cluster_id is None else guard_name(cluster_id)
    for page in clients.cloudwatch.get_paginator("describe_alarms").paginate(AlarmNamePrefix=prefix):
        for row in page["MetricAlarms"]:
            found_id = id_in_name(row["AlarmName"])
            if found_id is not None and cluster_id in (None, found_id):
                yield CloudResource(kind="alarm", id=row["AlarmName"], created_at=None, tags={ID_TAG: found_id})


def _delete_alarm(clients: Clients, found: CloudResource) -> None:
    clients.cloudwatch.delete_alarms(AlarmNames=[found.id])


DEADLINE_KINDS = (
    ResourceType(
        name="schedule",
        types=("aws:scheduler/schedule:Schedule",),
        find=_schedules,
        delete=_delete_schedule,
        bills=None,
        is_guard=True,
    ),
    ResourceType(
        name="state machine",
        types=("aws:sfn/stateMachine:StateMachine",),
        find=state_machines,
        delete=_delete_machine,
        bills=None,
        is_guard=True,
    ),
    ResourceType(
        name="alarm",
        types=("aws:cloudwatch/metricAlarm:MetricAlarm",),
        find=_alarms,
        delete=_delete_alarm,
        bills="about $0.10 a month",
        is_guard=True,
    ),
)
"""They are ended after the machines, because they would end the machines at the deadline if all else failed."""
