"""Whether AWS itself would end the cluster at its deadline: the cluster's state machine is started with DryRun."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any  # an execution's output

from clusterctl_infra.errors import CloudError
from clusterctl_infra.names import guard_name
from clusterctl_infra.plan.ending_machine import DRY_RUN_INPUT

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.deadline_resources import state_machines
from clusterctl.cloud.instances import InstanceState, instances_of
from clusterctl.cloud.machine_resources import addresses, reservations
from clusterctl.cloud.network_resources import nat_gateways
from clusterctl.cloud.refusal import aws_errors

WOULD_END = "DryRun flag is set"
"""What EC2 says instead of ending a machine that it would end: DryRunOperation, whose name Step Functions drops."""
DENIED = "not authorized"
"""What EC2 says where the state machine's role may not end it (EC2 API, "Error codes", UnauthorizedOperation).

About a resource that is not a machine, only this answer counts, and only while the resource exists: a NAT gateway that
is gone keeps its tags for an hour.
"""
NOT_FOUND = "it was not found by its tag"
TIMEOUT_S = 60.0
"""Tags of a machine that was just made may take a while to be found."""
MACHINE_S = 0.25
"""Added to the timeout for each machine: EC2 takes a few such questions a second, and throttled ones are repeated."""
Pause = Callable[[], None]


def not_ended(
    clients: Clients, cluster_id: str, wanted: Iterable[str], *, pause: Pause, timeout_s: float = TIMEOUT_S
) -> dict[str, str]:
    """Id → why AWS would not end it; empty when it would end all. Raises CloudError when that cannot be found out.

    `wanted`: the machines' ids; an answer about each is waited for, except about one that has ended by itself. The
    cluster's reservations, NAT gateways and elastic IPs are asked about, too.
    """
    ids = tuple(wanted)
    give_up = time.monotonic() + timeout_s + MACHINE_S * len(ids)
    with aws_errors("trying what ends the cluster at its deadline"):
        machine = next(iter(state_machines(clients, cluster_id)), None)
        if machine is None:
            raise CloudError(f"there is no state machine {guard_name(cluster_id)}", code="StateMachineDoesNotExist")
        while True:
            arn = clients.sfn.start_execution(stateMachineArn=machine.id, input=DRY_RUN_INPUT)["executionArn"]
            causes = answers(_output(clients, arn, pause, give_up=give_up))
            left = refusals(causes, ids)
            if left:
                left = without_gone(left, instances_of(clients, cluster_id), {*ids, *_others(clients, cluster_id)})
            if NOT_FOUND not in left.values() or time.monotonic() > give_up:
                return left
            pause()


def answers(output: str) -> dict[str, str]:
    """Id → what EC2 said, from the output of an execution."""
    rows = json.loads(output)
    found: Iterable[Mapping[str, Any]] = rows if isinstance(rows, list) else ()
    return {str(row["Id"]): str((row.get("Answer") or {}).get("Cause", "it said nothing")) for row in found}


def refusals(causes: Mapping[str, str], wanted: Iterable[str]) -> dict[str, str]:
    """The answers that are refusals, by id; `causes`: what `answers` gives.

    For a machine in `wanted`, that is any answer except that AWS would end it, or none at all; for any other resource,
    only that the right to end it is missing.
    """
    left = {id: causes.get(id, NOT_FOUND) for id in wanted}
    machines = {id: why for id, why in left.items() if WOULD_END not in why}
    return machines | {id: why for id, why in causes.items() if id not in left and DENIED in why}


def without_gone(left: Mapping[str, str], seen: Iterable[InstanceState], known: Container[str]) -> dict[str, str]:
    """The refusals without those for resources that AWS says are gone.

    `seen`: the cluster's machines; `known`: the ids of the machines asked about, and of the other resources it has now.
    """
    gone = {instance.instance_id for instance in seen if not instance.is_alive}
    return {id: why for id, why in left.items() if id in known and id not in gone}


def _others(clients: Clients, cluster_id: str) -> Iterator[str]:
    for find in (reservations, nat_gateways, addresses):
        yield from (found.id for found in find(clients, cluster_id))


def _output(clients: Clients, arn: str, pause: Pause, *, give_up: float) -> str:
    while True:
        row = clients.sfn.describe_execution(executionArn=arn)
        if row["status"] == "SUCCEEDED":
            return str(row["output"])
        if row["status"] != "RUNNING":
            raise CloudError(
                f"{arn} ended {row['status']}: {row.get('cause', '')}", code=str(row.get("error", "Failed"))
            )
        if time.monotonic() > give_up:
            raise CloudError(f"{arn} is still under way", code="Timeout")
        pause()
