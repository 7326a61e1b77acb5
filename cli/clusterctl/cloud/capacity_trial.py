"""Whether AWS has capacity for machines of a type in a zone: asked by a reservation that is cancelled at once.

Everything that is made carries the trial's own id and no cluster's, so that it can be ended even after a crash.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any  # EC2's requests: typed dictionaries with every key optional

from botocore.exceptions import ClientError
from clusterctl_infra.config.rules import is_zone_of
from clusterctl_infra.names import DEADLINE_TAG, ID_TAG, NAME_TAG, OWNER_TAG, TRIAL_TAG

from clusterctl.cloud.adopted_capacity import PLATFORM
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.delete_orphans import delete_orphans
from clusterctl.cloud.deletion_attempts import pause_s
from clusterctl.cloud.machine_resources import MACHINE_KINDS, RESERVATION
from clusterctl.cloud.refusal import aws_errors, code_of

if TYPE_CHECKING:
    from types_boto3_ec2.type_defs import TagSpecificationTypeDef

LASTS = timedelta(minutes=5)
"""After this time AWS itself ends a trial that nobody cancelled. No shortest time is documented, and clocks may differ
by one minute (CreateCapacityReservation in botocore 1.44; 2026-11-25)."""
LATE = timedelta(hours=1)
"""How much later than its end date AWS may end a reservation (the same page)."""
PENDING_S = 60.0
"""How long a reservation may be neither granted nor refused."""
END_S = 120.0
"""How long AWS may take to end what is left of a trial."""
NO_CAPACITY = ("InsufficientInstanceCapacity", "InsufficientCapacity", "InsufficientHostCapacity", "failed", "pending")
"""EC2's codes, and states of a reservation, that say that there is no capacity now (EC2 API; 2026-11-25)."""
NEXT = (*NO_CAPACITY, "VcpuLimitExceeded", "InstanceLimitExceeded", "Unsupported", "InvalidInstanceType")
"""Refusals that may not apply to another type or zone; any other refusal ends the trial."""
NOTHING_TO_CANCEL = ("failed", "expired", "cancelled")
"""States of a reservation that AWS does not cancel: nothing is left of it, and nothing bills (the same page)."""
KINDS = tuple(kind for kind in MACHINE_KINDS if kind.name in (RESERVATION, "placement group"))


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A type in a zone."""

    instance_type: str
    zone: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What AWS said to one candidate."""

    candidate: Candidate
    refusal: str | None
    """AWS's code, or the state of the reservation; None: there is capacity."""


@dataclass(frozen=True, kw_only=True)
class CapacityTrial:
    """What every candidate has in common: the trial's id, and how many machines it needs capacity for."""

    trial_id: str
    """12 hex digits, made for this trial."""
    cluster: str
    owner: str
    places: int
    is_grouped: bool
    """Whether the machines are to be in a placement group."""
    tags: Mapping[str, str]
    """A person's own: an account may refuse resources without them."""


def offered(clients: Clients, names: Sequence[str]) -> tuple[Candidate, ...]:
    """The types in the zones of the region that offer them: types in their order, zones by name. Raises CloudError."""
    filters: Any = [{"Name": "instance-type", "Values": list(names)}]
    with aws_errors(f"asking which zones of {clients.region} offer {', '.join(names)}"):
        pages = clients.ec2.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone", Filters=filters
        )
        found = {(str(row["InstanceType"]), row["Location"]) for page in pages for row in page["InstanceTypeOfferings"]}
    zones = sorted({zone for _, zone in found if is_zone_of(zone, clients.region)})
    return tuple(Candidate(instance_type=name, zone=zone) for name in names for zone in zones if (name, zone) in found)


def ask_for_capacity(
    clients: Clients,
    trial: CapacityTrial,
    candidates: Sequence[Candidate],
    *,
    now: Callable[[], datetime],
    tell: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Answer, ...]:
    """What AWS said to each candidate in turn, up to the first with capacity; nothing that was made for this is left.

    Raises CloudError for a refusal that would be the same for every candidate, and when something could not be ended.
    """
    answers: list[Answer] = []
    is_clean = False
    try:
        with aws_errors(f"asking whether there is room for {trial.places} machines"):
            group = _make_group(clients, trial, ends_at=now() + LASTS) if trial.is_grouped else None
            for candidate in candidates:
                refusal = _ask(clients, trial, candidate, group=group, ends_at=now() + LASTS, sleep=sleep)
                answers.append(Answer(candidate=candidate, refusal=refusal))
                if refusal is None:
                    break
            is_clean = group is None or _is_group_deleted(clients, trial)
    finally:
        if not is_clean:
            end_trial(clients, trial.trial_id, tell=tell, sleep=sleep)
    return tuple(answers)


def end_trial(
    clients: Clients, trial_id: str, *, tell: Callable[[str], None], sleep: Callable[[float], None] = time.sleep
) -> None:
    """Ends what is left of a trial. Raises CloudError when AWS does not let it go in time."""
    delete_orphans(
        clients,
        trial_id,
        {},
        data_since=None,
        pause=lambda: sleep(pause_s(clients)),
        timeout_s=END_S,
        tell=lambda what: tell(f"ending {what}, which was made to ask for capacity"),
        kinds=KINDS,
    )


def _make_group(clients: Clients, trial: CapacityTrial, *, ends_at: datetime) -> str:
    """Makes a placement group for the reservations of the trial; returns its ARN."""
    answer = clients.ec2.create_placement_group(
        GroupName=_group_name(trial),
        Strategy="cluster",
        TagSpecifications=_tagged("placement-group", trial, ends_at=ends_at),
    )
    return str(answer["PlacementGroup"]["GroupArn"])


def _is_group_deleted(clients: Clients, trial: CapacityTrial) -> bool:
    """Whether AWS deleted the group: it refuses while the reservation that was just cancelled is still in it."""
    try:
        clients.ec2.delete_placement_group(GroupName=_group_name(trial))
    except ClientError:
        return False
    return True


def _ask(
    clients: Clients,
    trial: CapacityTrial,
    candidate: Candidate,
    *,
    group: str | None,
    ends_at: datetime,
    sleep: Callable[[float], None],
) -> str | None:
    """AWS's refusal, or None if it has capacity. By then the reservation is cancelled. Raises botocore's errors."""
    placed: Any = {} if group is None else {"PlacementGroupArn": group}
    try:
        row = clients.ec2.create_capacity_reservation(
            ClientToken=f"{trial.trial_id}-{candidate.instance_type}-{candidate.zone}",
            InstanceType=candidate.instance_type,
            InstancePlatform=PLATFORM,
            AvailabilityZone=candidate.zone,
            InstanceCount=trial.places,
            InstanceMatchCriteria="targeted",
            EndDateType="limited",
            EndDate=ends_at,
            TagSpecifications=_tagged("capacity-reservation", trial, ends_at=ends_at),
            **placed,
        )["CapacityReservation"]
    except ClientError as e:
        if code_of(e) not in NEXT:
            raise
        return code_of(e)
    id = row["CapacityReservationId"]
    state = _settled(clients, id, str(row["State"]), sleep=sleep)
    if state not in NOTHING_TO_CANCEL:
        clients.ec2.cancel_capacity_reservation(CapacityReservationId=id)
    return None if state == "active" else state


def _settled(clients: Clients, id: str, state: str, *, sleep: Callable[[float], None]) -> str:
    """The reservation's state when it is no longer pending, or has been for too long."""
    left_s = PENDING_S
    while state == "pending" and left_s > 0:
        sleep(pause_s(clients))
        left_s -= pause_s(clients)
        with suppress(ClientError):  # it may not be seen yet
            rows = clients.ec2.describe_capacity_reservations(CapacityReservationIds=[id])["CapacityReservations"]
            state = str(rows[0]["State"]) if rows else state
    return state


def _group_name(trial: CapacityTrial) -> str:
    return f"clusterctl-probe-{trial.trial_id}"


def _tagged(kind: Any, trial: CapacityTrial, *, ends_at: datetime) -> list[TagSpecificationTypeDef]:
    """The trial's tags, with its own end as the deadline; `kind`: EC2's word for what carries them."""
    tags: Mapping[str, str] = {
        **trial.tags,
        ID_TAG: trial.trial_id,
        NAME_TAG: trial.cluster,
        OWNER_TAG: trial.owner,
        DEADLINE_TAG: ends_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        TRIAL_TAG: "true",
    }
    return [{"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}]
