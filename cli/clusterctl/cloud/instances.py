"""The instances of a cluster as AWS sees them now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any  # EC2's answers: typed dictionaries with every key optional

from clusterctl_infra.names import BIRTH_TAG, ID_TAG, NAME_TAG, SLOT_TAG

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.refusal import aws_errors

ALIVE = ("pending", "running", "stopping", "stopped")
"""States in which an instance can still be kept; `shutting-down` and `terminated` cannot."""
_TRANSITION = re.compile(r"\((\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}) (?:GMT|UTC)\)")


@dataclass(frozen=True, kw_only=True)
class InstanceState:
    """One instance; `reason` is AWS's own, such as `Client.InstanceInitiatedShutdown: …`."""

    instance_id: str
    slot: int | None
    state: str
    private_ip: str | None
    public_ip: str | None
    reason: str | None
    launched_at: datetime | None = None
    ended_at: datetime | None = None
    """When its end began, where AWS says so."""
    instance_type: str | None = None
    birth: str | None = None
    """What it took on at birth alone: `replaceable.birth_facts` reads it."""

    @property
    def is_alive(self) -> bool:
        """It runs, or may run again."""
        return self.state in ALIVE

    @property
    def told(self) -> str:
        """AWS's word for what it does, with AWS's reason: `terminated: Server.SpotInstanceTermination`."""
        return self.state + (f": {self.reason}" if self.reason else "")


def instances_of(clients: Clients, cluster_id: str) -> tuple[InstanceState, ...]:
    """The instances with this cluster's id tag, by slot, ended ones too while AWS shows them. Raises CloudError."""
    with aws_errors(f"describing the instances of {cluster_id}"):
        pages = clients.ec2.get_paginator("describe_instances").paginate(
            Filters=[{"Name": f"tag:{ID_TAG}", "Values": [cluster_id]}]
        )
        rows = [row for page in pages for held in page["Reservations"] for row in held.get("Instances", [])]
    found = (instance_state(row) for row in rows)
    return tuple(sorted(found, key=lambda one: (one.slot is None, one.slot or 0, one.instance_id)))


def other_ids_alive(clients: Clients, name: str, *, own_id: str | None) -> tuple[str, ...]:
    """Other clusters' ids that have living instances under this name. Raises CloudError."""
    with aws_errors(f"looking for other clusters called {name}"):
        pages = clients.ec2.get_paginator("describe_instances").paginate(
            Filters=[
                {"Name": f"tag:{NAME_TAG}", "Values": [name]},
                {"Name": "instance-state-name", "Values": list(ALIVE)},
            ]
        )
        rows = [row for page in pages for held in page["Reservations"] for row in held.get("Instances", [])]
    ids = {tags_of(row.get("Tags")).get(ID_TAG) for row in rows}
    return tuple(sorted(found for found in ids if found is not None and found != own_id))


def instance_state(row: Mapping[str, Any]) -> InstanceState:
    """One row of DescribeInstances."""
    tags = tags_of(row.get("Tags"))
    slot = tags.get(SLOT_TAG, "")
    transition = row.get("StateTransitionReason") or ""
    reason = (row.get("StateReason") or {}).get("Message") or transition
    state = row["State"]["Name"]
    return InstanceState(
        instance_id=row["InstanceId"],
        slot=int(slot) if slot.isdigit() else None,
        state=state,
        private_ip=row.get("PrivateIpAddress"),
        public_ip=row.get("PublicIpAddress"),
        reason=reason or None,
        launched_at=row.get("LaunchTime"),
        ended_at=None if state in ALIVE else transition_time(transition),
        instance_type=row.get("InstanceType"),
        birth=tags.get(BIRTH_TAG),
    )


def transition_time(reason: str) -> datetime | None:
    """The instant in a StateTransitionReason such as `User initiated (2026-01-31 23:59:59 GMT)`; None where is none."""
    found = _TRANSITION.search(reason)
    try:
        return None if found is None else datetime.fromisoformat(f"{found[1]}+00:00")
    except ValueError:
        return None


def tags_of(rows: Iterable[Mapping[str, Any]] | None) -> dict[str, str]:
    """EC2's list of tags as a dictionary."""
    return {row["Key"]: row["Value"] for row in rows or ()}
