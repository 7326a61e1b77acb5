"""Kinds that end a cluster at its deadline: the schedule and its state machine, found by the id in their names."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_infra.names import guard_name

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.found import Found, Kind


def _schedules(clients: Clients, cluster_id: str) -> Iterator[Found]:
    pages = clients.scheduler.get_paginator("list_schedules").paginate(NamePrefix=guard_name(cluster_id))
    for page in pages:
        for row in page["Schedules"]:
            yield Found(kind="schedule", id=f"{row['GroupName']}/{row['Name']}", created_at=row.get("CreationDate"))


def _delete_schedule(clients: Clients, found: Found) -> None:
    group, _, name = found.id.partition("/")
    clients.scheduler.delete_schedule(GroupName=group, Name=name)


def state_machines(clients: Clients, cluster_id: str) -> Iterator[Found]:
    """The cluster's own: one, or none."""
    for page in clients.sfn.get_paginator("list_state_machines").paginate():
        for row in page["stateMachines"]:
            if row["name"] == guard_name(cluster_id):
                yield Found(kind="state machine", id=row["stateMachineArn"], created_at=row.get("creationDate"))


def _delete_machine(clients: Clients, found: Found) -> None:
    clients.sfn.delete_state_machine(stateMachineArn=found.id)


DEADLINE_KINDS = (
    Kind(
        name="schedule",
        types=("aws:scheduler/schedule:Schedule",),
        find=_schedules,
        delete=_delete_schedule,
        bills=None,
    ),
    Kind(
        name="state machine",
        types=("aws:sfn/stateMachine:StateMachine",),
        find=state_machines,
        delete=_delete_machine,
        bills=None,
    ),
)
"""Ended after the machines, which they would end themselves."""
