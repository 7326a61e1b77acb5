"""An account with many machines, and the definition that ends a cluster run against it on a clock of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any  # parameters and answers

from clusterctl_infra.plan.ending_machine import NOBODY, SCHEDULE_INPUT, ending_definition
from clusterctl_rehearsal.states.failure import TaskFailed
from clusterctl_rehearsal.states.interpreter import Execution

from tests.unit.rehearsal.small_region import CLUSTER_ID

UNSURE_INPUT = '{"WaitSeconds": 300, "IfSlot0IsGone": true}'
"""The input that nodes give which cannot know whether slot 0 died."""


class Clock:
    """Time passes only where the machine waits."""

    def __init__(self) -> None:
        self.now = 0.0

    def pause(self, seconds: float) -> None:
        self.now += seconds


class Fleet:
    """An EC2 with many machines whose answers are as large as AWS's; some machines end late or by no call at all."""

    def __init__(self, nodes: int, interfaces: int, *, refusals: Mapping[str, int] | None = None) -> None:
        card = {f"Field{number}": "x" * 30 for number in range(25)}
        self.cards = [card] * interfaces
        self.living = {f"i-{number:017x}": True for number in range(nodes)}
        self.untagged: set[str] = set()
        self.refusals = dict(refusals or {})
        self.asked: list[str] = []
        self.largest = 0
        self.empty_pages = 0
        self.cancelled = 0
        self.gateways: dict[str, str] = {}
        """NAT gateway → its state."""
        self.addresses: set[str] = set()
        self.looks_until_deleted = 0
        self.shutting_down_s = 0.0
        self.clock = Clock()
        self.held: set[str] = set()
        """NAT gateways and addresses that AWS refuses to delete or release."""
        self.not_allowed: set[str] = set()
        """Calls that AWS refuses."""
        self.tells_reservations = True
        self.tells_tags = True
        self.slot_0: Callable[[], bool] = lambda: False
        """The answer to the question whether slot 0 has a machine."""

    def call(self, action: str, parameters: Mapping[str, Any]) -> Any:
        self.asked.append(action)
        if action in self.not_allowed:
            raise TaskFailed("Ec2.Ec2Exception", "You are not authorized to perform this operation.")
        is_trial = NOBODY in json.dumps(parameters) or parameters.get("MaxResults") == 1
        answer = {} if is_trial else getattr(self, action)(parameters)
        self.largest = max(self.largest, len(json.dumps(answer)))
        return answer

    def describeTags(self, parameters: Mapping[str, Any]) -> Any:  # noqa: N802 (EC2 names it)
        kinds = next(row["Values"] for row in parameters["Filters"] if row["Name"] == "resource-type")
        tag = {"Key": "clusterctl:id", "Value": CLUSTER_ID}
        found = [(kind, id) for kind in kinds for id in self._tagged(kind)]
        return {"Tags": [{**tag, "ResourceType": kind, "ResourceId": id} for kind, id in found]}

    def _tagged(self, kind: str) -> list[str]:
        if kind == "elastic-ip":
            return sorted(self.addresses)
        if kind == "natgateway":
            return sorted(self.gateways)
        if kind == "capacity-reservation":
            if not self.tells_tags:
                raise TaskFailed("Ec2.Ec2Exception", "InternalError")
            return ["cr-0", "cr-1"]  # the first one ended long ago
        return [id for id in self.living if id not in self.untagged]

    def describeInstances(self, parameters: Mapping[str, Any]) -> Any:  # noqa: N802
        if any(row["Name"] == "tag:clusterctl:slot" for row in parameters["Filters"]):
            return {"Reservations": [{"Instances": [{"InstanceId": "i-0"}]}] if self.slot_0() else []}
        states = next(row["Values"] for row in parameters["Filters"] if row["Name"] == "instance-state-name")
        ids = [id for id, lives in self.living.items() if lives]
        if "shutting-down" in states and self.clock.now < self.shutting_down_s:
            ids = list(self.living)
        start = int(parameters.get("NextToken", 0))
        if start == 0 and self.empty_pages:  # AWS may answer an empty page with a token
            self.empty_pages -= 1
            return {"Reservations": [], "NextToken": "0"}
        page = ids[start : start + parameters["MaxResults"]]
        rest = start + parameters["MaxResults"]
        state = {True: {"Name": "running"}, False: {"Name": "shutting-down"}}
        rows = [
            {"Instances": [{"InstanceId": id, "State": state[self.living[id]], "NetworkInterfaces": self.cards}]}
            for id in page
        ]
        return {"Reservations": rows, **({"NextToken": str(rest)} if rest < len(ids) else {})}

    def describeCapacityReservations(self, parameters: Mapping[str, Any]) -> Any:  # noqa: N802
        if not self.tells_reservations:
            raise TaskFailed("Ec2.Ec2Exception", "InvalidParameterValue")
        assert parameters["CapacityReservationIds"] == ["cr-0", "cr-1"]
        assert [row["Name"] for row in parameters["Filters"]] == ["state"]  # it documents no filter by tag
        return {"CapacityReservations": [] if self.cancelled else [{"CapacityReservationId": "cr-1"}]}

    def cancelCapacityReservation(self, parameters: Mapping[str, Any]) -> Any:  # noqa: N802
        if parameters["CapacityReservationId"] != "cr-1":
            raise TaskFailed("Ec2.Ec2Exception", "InvalidState")
        refuse_dry_run(parameters)
        self.cancelled += 1
        return {"Return": True}

    def describeNatGateways(self, parameters: Mapping[str, Any]) -> Any:  # noqa: N802
        assert not any(self.living.values())
        assert self.clock.now >= self.shutting_down_s
        states = next(row["Values"] for row in parameters["Filter"] if row["Name"] == "state")
        found = [{"NatGatewayId": id, "State": state} for id, state in self.gateways.items() if state in states]
        if "deleting" in states:
            self.looks_until_deleted -= 1
            if self.looks_until_deleted < 0:
                self.gateways = {id: state for id, state in self.gateways.items() if state != "deleting"}
                return {"NatGateways": []}
        return {"NatGateways": found}

    def deleteNatGateway(self, parameters: Mapping[str, Any]) -> Any:  # noqa: N802
        id = parameters["NatGatewayId"]
        if id in self.held:
            raise TaskFailed("Ec2.Ec2Exception", "You are not authorized to perform this operation.")
        refuse_dry_run(parameters)
        self.gateways[id] = "deleting"
        return {"NatGatewayId": id}

    def describeAddresses(self, parameters: Mapping[str, Any]) -> Any:  # noqa: N802
        return {"Addresses": [{"AllocationId": id} for id in sorted(self.addresses)]}

    def releaseAddress(self, parameters: Mapping[str, Any]) -> Any:  # noqa: N802
        id = parameters["AllocationId"]
        refuse_dry_run(parameters)
        if id in self.held or self.gateways:
            raise TaskFailed("Ec2.Ec2Exception", f"The address with allocation id [{id}] is in use.")
        self.addresses.remove(id)
        return {}

    def terminateInstances(self, parameters: Mapping[str, Any]) -> Any:  # noqa: N802
        (id,) = parameters["InstanceIds"]
        if self.refusals.get(id, 0) > 0:
            self.refusals[id] -= 1
            raise TaskFailed("Ec2.Ec2Exception", "Request limit exceeded. (Service: Ec2, Status Code: 503)")
        refuse_dry_run(parameters)
        self.living[id] = False
        return {"TerminatingInstances": [{"InstanceId": id}]}


def refuse_dry_run(parameters: Mapping[str, Any]) -> None:
    """Raises AWS's answer to a dry run by somebody who has the right (request ids have 36 characters)."""
    if parameters.get("DryRun"):
        message = "Request would have succeeded, but DryRun flag is set. (Service: Ec2, Status Code: 412, Request ID: "
        raise TaskFailed("Ec2.Ec2Exception", f"{message}{'x' * 36})")


def executed(fleet: Fleet, given: str = SCHEDULE_INPUT, *, clock: Clock | None = None) -> tuple[Execution, Clock, Any]:
    """The execution, the clock after it, and its output."""
    clock = fleet.clock if clock is None else clock
    execution = Execution(
        definition=ending_definition(CLUSTER_ID), call=fleet.call, pause=clock.pause, clock=lambda: clock.now
    )
    return execution, clock, execution.run(json.loads(given))
