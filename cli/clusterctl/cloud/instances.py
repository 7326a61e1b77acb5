"""The instances of a cluster as AWS sees them now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any  # EC2's answers: typed dictionaries with every key optional

from clusterctl_infra.names import BIRTH_TAG, DEADLINE_TAG, ID_TAG, NAME_TAG, NO_DEADLINE, SLOT_TAG
from clusterctl_infra.strict_json import whole_number

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.refusal import aws_errors

if TYPE_CHECKING:
    from types_boto3_ec2.type_defs import FilterTypeDef

ALIVE = ("pending", "running", "stopping", "stopped")
"""States in which an instance can still be kept; `shutting-down` and `terminated` cannot."""
TAKEN_BACK = ("Server.SpotInstanceTermination", "Server.SpotInstanceShutdown")
"""The codes of spot machines that AWS took back, for their capacity or price (EC2 API, StateReason; 2026-11-22)."""
_TRANSITION = re.compile(r"\((\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}) (?:GMT|UTC)\)")


@dataclass(frozen=True, kw_only=True)
class InstanceState:
    """One instance; `reason` is AWS's reason for its state, such as `Client.InstanceInitiatedShutdown: …`."""

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
    """The settings that it could only get at birth, from its tag: `replaceable.birth_facts` reads them."""
    is_spot: bool = False
    """Whether it is a spot machine, for which no place was ever reserved."""

    @property
    def is_alive(self) -> bool:
        """Whether the instance runs, or may run again."""
        return self.state in ALIVE

    @property
    def state_and_reason(self) -> str:
        """AWS's word for what it does, with AWS's reason: `terminated: Client.InstanceInitiatedShutdown: …`."""
        return self.state + (f": {self.reason}" if self.reason else "")


def instances_of(clients: Clients, cluster_id: str) -> tuple[InstanceState, ...]:
    """The instances with this cluster's id tag, by slot, ended ones too while AWS shows them. Raises CloudError."""
    with aws_errors(f"describing the instances of {cluster_id}"):
        pages = clients.ec2.get_paginator("describe_instances").paginate(
            Filters=[{"Name": f"tag:{ID_TAG}", "Values": [cluster_id]}]
        )
        rows = [row for page in pages for held in page["Reservations"] for row in held.get("Instances", [])]
    found = (instance_state(row) for row in rows)
    return tuple(sorted(found, key=lambda instance: (instance.slot is None, instance.slot or 0, instance.instance_id)))


def other_ids_alive(clients: Clients, name: str, *, own_id: str | None, now: datetime) -> tuple[str, ...]:
    """Ids of other clusters of this name that run or are coming up. Raises CloudError.

    A cluster is coming up if it has a network whose deadline is still ahead. One that is down on purpose has no
    deadline.
    """
    named: FilterTypeDef = {"Name": f"tag:{NAME_TAG}", "Values": [name]}
    with aws_errors(f"looking for other clusters called {name}"):
        pages = clients.ec2.get_paginator("describe_instances").paginate(
            Filters=[named, {"Name": "instance-state-name", "Values": list(ALIVE)}]
        )
        machines = [row for page in pages for held in page["Reservations"] for row in held.get("Instances", [])]
        vpcs = clients.ec2.get_paginator("describe_vpcs").paginate(Filters=[named])
        networks = [tags_of(row.get("Tags")) for page in vpcs for row in page["Vpcs"]]
    tags = [tags_of(row.get("Tags")) for row in machines]
    tags += [network for network in networks if _is_before_deadline(network, now)]
    return tuple(sorted({row[ID_TAG] for row in tags if row.get(ID_TAG) not in (None, own_id)}))


def instance_state(row: Mapping[str, Any]) -> InstanceState:
    """One row of DescribeInstances."""
    tags = tags_of(row.get("Tags"))
    transition = row.get("StateTransitionReason") or ""
    state_reason = row.get("StateReason") or {}
    reason = state_reason.get("Message") or transition
    if (code := state_reason.get("Code")) in TAKEN_BACK:
        reason = f"AWS took this spot machine back ({code})"
    state = row["State"]["Name"]
    return InstanceState(
        instance_id=row["InstanceId"],
        slot=whole_number(tags.get(SLOT_TAG)),
        state=state,
        private_ip=row.get("PrivateIpAddress"),
        public_ip=row.get("PublicIpAddress"),
        reason=reason or None,
        launched_at=row.get("LaunchTime"),
        ended_at=None if state in ALIVE else transition_time(transition),
        instance_type=row.get("InstanceType"),
        birth=tags.get(BIRTH_TAG),
        is_spot=row.get("InstanceLifecycle") == "spot",
    )


def transition_time(reason: str) -> datetime | None:
    """The instant in a StateTransitionReason such as `User initiated (2026-01-31 23:59:59 GMT)`, else None."""
    found = _TRANSITION.search(reason)
    try:
        return None if found is None else datetime.fromisoformat(f"{found[1]}+00:00")
    except ValueError:
        return None


def _is_before_deadline(tags: Mapping[str, str], now: datetime) -> bool:
    """Whether these are the tags of something whose deadline is still to come."""
    try:
        return datetime.fromisoformat(tags.get(DEADLINE_TAG, NO_DEADLINE)) > now
    except (ValueError, TypeError):  # no deadline on purpose, or not a time
        return False


def tags_of(rows: Iterable[Mapping[str, Any]] | None) -> dict[str, str]:
    """EC2's list of tags as a dictionary."""
    return {row["Key"]: row["Value"] for row in rows or ()}
