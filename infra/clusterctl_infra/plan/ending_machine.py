"""The state machine that ends a cluster: what EventBridge Scheduler starts at the deadline, as Amazon States Language.

It looks the machines up by the cluster's id when it runs, so that replaced and late ones are covered. The first wave
asks for no more than ids; then passes follow until one finds nothing that lives. When the last machine has ended, and
needs no way out any more, it deletes the NAT gateway and releases the elastic IPs. A step's answer may have 256 KiB and
an execution 25,000 events (Step Functions developer guide, "Service quotas"; 2026-11-21): hence small pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any  # a definition is JSON-like

from clusterctl_infra.names import ID_TAG, SLOT_TAG

DRY_RUN_INPUT = '{"DryRun": true}'
"""Started with this, it makes each call that ends a resource with DryRun, so ends nothing, and returns AWS's answers:
a list of `{"Id": …, "Kind": …, "Answer": {"Error": …, "Cause": …}}`, with EC2's word for the type of resource."""
SCHEDULE_INPUT = "{}"
WAIT_KEY = "WaitSeconds"
"""Nodes that end the cluster early start it with this key: for so many seconds it lets all nodes save."""
IF_GONE_KEY = "IfSlot0IsGone"
"""Nodes that have lost slot 0 and cannot know whether it died start it with this key set to true: AWS knows."""
DOUBT_S = 60
"""The pause between the two looks for slot 0's machine."""
INSTANCES_PER_PAGE = 5
"""EC2's smallest page: with its interfaces, one p5 node takes some 40 KB of JSON."""
TAGS_PER_PAGE = 1000
"""A row is about 150 bytes."""
RESERVATIONS_PER_CALL = 100
"""The next call names the reservations by id, so a page of their tags is no larger than this."""
PARALLEL = 40
"""An inline Map runs at most this many steps side by side ("Service quotas", too)."""
PASS_PAUSE_S = 30
LEAVING_PAUSE_S = 5
"""The pause between two looks at machines that are shutting down, and at NAT gateways that are being deleted."""
THROTTLED = "*equest limit exceeded*"
"""What EC2 answers when an account calls too often: it takes a few calls of TerminateInstances a second, after a first
hundred or less (EC2 Developer Guide, "Request throttling"). Step Functions gives all of EC2's refusals one name."""
THROTTLED_PAUSE_S = 5
TIMEOUT_S = 3600
"""A machine that does not end, such as one protected from termination, fails the execution instead of hiding in it."""
UNASKED = "the machines were ended; EC2 did not say which reservations there are: one bills empty until its end date"
KEPT = "the machines were ended; a NAT gateway or an elastic IP of the cluster is left, and bills until clusterctl down"
INSTANCE, RESERVATION, GATEWAY, ADDRESS = "instance", "capacity-reservation", "natgateway", "elastic-ip"
"""EC2's words for the types of resources that the state machine ends (EC2 API, TagSpecification; 2026-11-26)."""
_ENDING_CALLS = {
    INSTANCE: ("terminateInstances", "InstanceIds"),
    RESERVATION: ("cancelCapacityReservation", "CapacityReservationId"),
    GATEWAY: ("deleteNatGateway", "NatGatewayId"),
    ADDRESS: ("releaseAddress", "AllocationId"),
}
SPARED = {"Ended": False}
"""The output of an execution with `IF_GONE_KEY` that found slot 0 alive: it ended nothing."""
NOBODY = "no cluster"
"""An id that no cluster has: a look for it finds nothing, gets a small answer, and shows whether the role may look."""
_LIVING = ["pending", "running", "stopping", "stopped"]
_BILLING_GATEWAY = ["pending", "available"]
_SHUTTING_DOWN = "shutting-down"
_HELD = ["active", "pending", "scheduled", "assessing"]
_RETRY = [
    {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 2, "BackoffRate": 2.0, "MaxAttempts": 5, "MaxDelaySeconds": 20}
]
State = dict[str, Any]


def ending_definition(cluster_id: str, *, partition: str = "aws") -> State:
    """The definition of one cluster's state machine."""
    ec2 = _Ec2(partition=partition)
    tagged = {"Name": f"tag:{ID_TAG}", "Values": [cluster_id]}
    return {
        "Comment": "clusterctl: ends every machine, reservation, NAT gateway and elastic IP of one cluster",
        "StartAt": "IsDryRun",
        "TimeoutSeconds": TIMEOUT_S,
        "States": {
            "IsDryRun": _if("$.DryRun", {"BooleanEquals": True}, then="TryLooks", otherwise="IsEarly"),
            "IsEarly": _if(f"$.{WAIT_KEY}", {"NumericGreaterThan": 0}, then="LetSave", otherwise="IsUnsure"),
            "LetSave": {"Type": "Wait", "SecondsPath": f"$.{WAIT_KEY}", "Next": "IsUnsure"},
            **_unless_slot_0_lives(ec2, tagged),
            **_dry_run(ec2, cluster_id),
            **_first_wave(ec2, cluster_id),
            **_reservations(ec2, cluster_id),
            **_instances(ec2, tagged),
            "Wait": {"Type": "Wait", "Seconds": PASS_PAUSE_S, "Next": "Pass"},
            **_leaving(ec2, tagged),
            **_gateways(ec2, tagged),
            **_addresses(ec2, cluster_id, tagged),
            "Kept": {"Type": "Fail", "Error": "NetworkKept", "Cause": KEPT},
            "WasTrouble": _if_any("$.Trouble", then="Unasked", otherwise="Ended"),
            "Unasked": {"Type": "Fail", "Error": "ReservationsUnknown", "Cause": UNASKED},
            "Ended": {"Type": "Succeed"},
        },
    }


@dataclass(frozen=True, kw_only=True)
class _Ec2:
    """Tasks that call EC2, by the AWS SDK integration."""

    partition: str

    def task(self, action: str, parameters: State, *, retries: bool = True) -> State:
        resource = f"arn:{self.partition}:states:::aws-sdk:ec2:{action}"
        return {
            "Type": "Task",
            "Resource": resource,
            "Parameters": parameters,
            **({"Retry": _RETRY} if retries else {}),
        }

    def ids(self, cluster_id: str, *kinds: str, most: int = TAGS_PER_PAGE) -> State:
        """The call for the ids of the resources of these types that carry the tag; some of them may be gone already."""
        filters = [
            {"Name": "key", "Values": [ID_TAG]},
            {"Name": "value", "Values": [cluster_id]},
            {"Name": "resource-type", "Values": list(kinds)},
        ]
        return self.task("describeTags", {"Filters": filters, "MaxResults": most})

    def end(self, kind: str, id_path: str = "$", *, more: State | None = None, retries: bool = False) -> State:
        """The call that ends one resource of that type.

        Each machine has a call of its own: with several ids, one that is gone makes EC2 end none (TerminateInstances).
        """
        action, parameter = _ENDING_CALLS[kind]
        named = f"States.Array({id_path})" if kind == INSTANCE else id_path
        return self.task(action, {f"{parameter}.$": named, **(more or {})}, retries=retries)


def _unless_slot_0_lives(ec2: _Ec2, tagged: State) -> dict[str, State]:
    """With `IF_GONE_KEY`, the states end nothing while slot 0 has a machine: two looks have to find none.

    A machine that is being replaced shuts down for minutes, and its successor is there seconds after that, so a slot 0
    that is shutting down counts as alive. So does a stopped one, which may be started again. Asked without a page size,
    EC2 gives everything at once.
    """
    there = {"Name": "instance-state-name", "Values": [*_LIVING, _SHUTTING_DOWN]}
    asked = {"Filters": [tagged, {"Name": f"tag:{SLOT_TAG}", "Values": ["0"]}, there]}
    look: State = {**ec2.task("describeInstances", asked), "ResultPath": "$.Slot0"}
    return {
        "IsUnsure": _if(f"$.{IF_GONE_KEY}", {"BooleanEquals": True}, then="Slot0", otherwise="Ids"),
        "Slot0": {**look, "Next": "AnySlot0"},
        "AnySlot0": _if_any("$.Slot0.Reservations[0]", then="Spared", otherwise="Doubt"),
        "Doubt": {"Type": "Wait", "Seconds": DOUBT_S, "Next": "Slot0Again"},
        "Slot0Again": {**look, "Next": "AnySlot0Again"},
        "AnySlot0Again": _if_any("$.Slot0.Reservations[0]", then="Spared", otherwise="Ids"),
        "Spared": {"Type": "Pass", "Result": SPARED, "End": True},
    }


def _dry_run(ec2: _Ec2, cluster_id: str) -> dict[str, State]:
    """The states that make each ending call with DryRun and keep the answer; none leads to a state that ends something.

    If AWS answers that the account calls too often, the call is made again.
    """
    caught = {"ErrorEquals": ["States.ALL"], "ResultPath": "$.Answer", "Next": "TryRefused"}
    dry = {"ResultPath": None, "Catch": [caught], "End": True}
    tries = {f"Try {kind}": {**ec2.end(kind, "$.Id", more={"DryRun": True}), **dry} for kind in _ENDING_CALLS}
    which = [_rule("$.Kind", {"StringMatches": kind}, then=f"Try {kind}") for kind in _ENDING_CALLS]
    each = {
        "StartAt": "Try",
        "States": {
            "Try": {"Type": "Choice", "Choices": which, "Default": "TryHeard"},
            **tries,
            "TryRefused": _if("$.Answer.Cause", {"StringMatches": THROTTLED}, then="TryLater", otherwise="TryHeard"),
            "TryLater": {"Type": "Wait", "Seconds": THROTTLED_PAUSE_S, "Next": "Try"},
            "TryHeard": {"Type": "Pass", "End": True},
        },
    }
    found = "$$.Map.Item.Value"
    return {
        **_dry_looks(ec2),
        "TryIds": {**ec2.ids(cluster_id, *_ENDING_CALLS), "ResultPath": "$.Wave", "Next": "AnyToTry"},
        "AnyToTry": _if_any("$.Wave.Tags[0]", then="TryAll", otherwise="Ended"),
        "TryAll": {
            **_map("$.Wave.Tags[*]", each),
            "ItemSelector": {"Id.$": f"{found}.ResourceId", "Kind.$": f"{found}.ResourceType"},
            "ResultPath": "$.Tried",
            "OutputPath": "$.Tried",
            "Next": "Ended",
        },
    }


def _dry_looks(ec2: _Ec2) -> dict[str, State]:
    """The looks that ending needs. No error is caught: if the role may not look somewhere, the dry run fails, too."""
    nothing = {"Name": f"tag:{ID_TAG}", "Values": [NOBODY]}
    held = {"Filters": [{"Name": "state", "Values": _HELD}], "MaxResults": 1}
    looks = {
        "TryLooks": ec2.task("describeInstances", {"Filters": [nothing]}),
        "TryLookAtGateways": ec2.task("describeNatGateways", {"Filter": [nothing]}),
        "TryLookAtAddresses": ec2.task("describeAddresses", {"Filters": [nothing]}),
        "TryLookAtReservations": ec2.task("describeCapacityReservations", held),
    }
    following = [*list(looks)[1:], "TryIds"]
    return {
        name: {**looks[name], "ResultPath": None, "Next": then} for name, then in zip(looks, following, strict=True)
    }


def _first_wave(ec2: _Ec2, cluster_id: str) -> dict[str, State]:
    """Ends every machine that carries the tag, at once; what is gone already or refused is left to the passes."""
    caught = {"ErrorEquals": ["States.ALL"], "ResultPath": None, "Next": "Pass"}
    return {
        "Ids": {**ec2.ids(cluster_id, INSTANCE), "ResultPath": "$.Wave", "Catch": [caught], "Next": "AnyIds"},
        "AnyIds": _if_any("$.Wave.Tags[0]", then="EndAll", otherwise="Pass"),
        "EndAll": {**_each("$.Wave.Tags[*].ResourceId", "End", ec2.end(INSTANCE)), "Next": "Pass"},
        "Pass": {"Type": "Pass", "Result": {"Found": False}, "Next": "Reservations"},
    }


def _reservations(ec2: _Ec2, cluster_id: str) -> dict[str, State]:
    """Cancels the cluster's reservation: an empty one costs as much as a full one.

    It is found by its tag, as machines are in the first wave: EC2's reference does not say that reservations can be
    filtered by tag (2026-11-24). Reservations that have ended keep their tags for a while, so their states are looked
    up. Where that fails, each is asked to end, and if another pass follows, it looks again.
    """
    if_no_ids = {"ErrorEquals": ["States.ALL"], "ResultPath": "$.Trouble", "Next": "Instances"}
    if_no_states = {**if_no_ids, "Next": "CancelUntold"}
    held = {"Name": "state", "Values": _HELD}
    asked = {"CapacityReservationIds.$": "$.Tagged.Tags[*].ResourceId", "Filters": [held]}
    cancel = ec2.end(RESERVATION)
    ids = "$.Held.CapacityReservations[*].CapacityReservationId"
    return {
        "Reservations": {
            **ec2.ids(cluster_id, RESERVATION, most=RESERVATIONS_PER_CALL),
            "ResultPath": "$.Tagged",
            "Catch": [if_no_ids],
            "Next": "AnyTagged",
        },
        "AnyTagged": _if_any("$.Tagged.Tags[0]", then="ReservationStates", otherwise="Instances"),
        "ReservationStates": {
            **ec2.task("describeCapacityReservations", asked),
            "ResultPath": "$.Held",
            "Catch": [if_no_states],
            "Next": "AnyReservations",
        },
        "AnyReservations": _if_any("$.Held.CapacityReservations[0]", then="Cancel", otherwise="Instances"),
        "Cancel": {**_each(ids, "CancelOne", cancel), "Next": "FoundReservation"},
        "CancelUntold": {**_each("$.Tagged.Tags[*].ResourceId", "CancelOneUntold", cancel), "Next": "Instances"},
        "FoundReservation": {"Type": "Pass", "Result": {"Found": True}, "Next": "Instances"},
    }


def _instances(ec2: _Ec2, tagged: State) -> dict[str, State]:
    """Ends the machines that live, page by page; of all pages, it remembers only whether any machine was found."""
    living = {"Name": "instance-state-name", "Values": _LIVING}
    asked: State = {"Filters": [tagged, living], "MaxResults": INSTANCES_PER_PAGE}
    following: State = {**asked, "NextToken.$": "$.Page.NextToken"}
    page = {"ResultPath": "$.Page", "Next": "AnyInstances"}
    ids = "$.Page.Reservations[*].Instances[*].InstanceId"
    return {
        "Instances": {**ec2.task("describeInstances", asked), **page},
        "NextPage": {**ec2.task("describeInstances", following), **page},
        "AnyInstances": _if_any("$.Page.Reservations[0]", then="EndPage", otherwise="More"),
        "EndPage": {**_each(ids, "EndOne", ec2.end(INSTANCE)), "Next": "FoundInstance"},
        "FoundInstance": {"Type": "Pass", "Result": True, "ResultPath": "$.Found", "Next": "More"},
        "More": _if("$.Page.NextToken", {"StringGreaterThan": ""}, then="NextPage", otherwise="WasAny"),
        "WasAny": _if("$.Found", {"BooleanEquals": True}, then="Wait", otherwise="Leaving"),
    }


def _leaving(ec2: _Ec2, tagged: State) -> dict[str, State]:
    """Waits until no machine is shutting down: its programs may still need the way out. Ends machines that came late.

    An empty page may have a next one, so machines count as gone only after the last page.
    """
    there = {"Name": "instance-state-name", "Values": [*_LIVING, _SHUTTING_DOWN]}
    asked: State = {"Filters": [tagged, there], "MaxResults": INSTANCES_PER_PAGE}
    page = {"ResultPath": "$.Page", "Next": "AnyLeaving"}
    first = "$.Page.Reservations[0].Instances[0].State.Name"
    return {
        "Leaving": {**ec2.task("describeInstances", asked), **page},
        "NextLeaving": {**ec2.task("describeInstances", {**asked, "NextToken.$": "$.Page.NextToken"}), **page},
        "AnyLeaving": _if_any("$.Page.Reservations[0]", then="IsLeaving", otherwise="MoreLeaving"),
        "IsLeaving": _if(first, {"StringMatches": _SHUTTING_DOWN}, then="LeavingWait", otherwise="Wait"),
        "LeavingWait": {"Type": "Wait", "Seconds": LEAVING_PAUSE_S, "Next": "Leaving"},
        "MoreLeaving": _if("$.Page.NextToken", {"StringGreaterThan": ""}, then="NextLeaving", otherwise="Gateways"),
    }


def _gateways(ec2: _Ec2, tagged: State) -> dict[str, State]:
    """Deletes the cluster's NAT gateways and waits until they are gone, as only then their addresses are free.

    A refusal stops nothing: what is still there at the end fails the execution.
    """
    delete = ec2.end(GATEWAY, retries=True)
    return {
        "Gateways": {**_look_at_gateways(ec2, tagged, _BILLING_GATEWAY), "Next": "AnyGateways"},
        "AnyGateways": _if_any("$.Network.NatGateways[0]", then="EndGateways", otherwise="GoingGateways"),
        "EndGateways": {
            **_each("$.Network.NatGateways[*].NatGatewayId", "EndGateway", delete),
            "Next": "GoingGateways",
        },
        "GoingGateways": {**_look_at_gateways(ec2, tagged, ["deleting"]), "Next": "AnyGoing"},
        "AnyGoing": _if_any("$.Network.NatGateways[0]", then="GatewaysWait", otherwise="Addresses"),
        "GatewaysWait": {"Type": "Wait", "Seconds": LEAVING_PAUSE_S, "Next": "GoingGateways"},
    }


def _look_at_gateways(ec2: _Ec2, tagged: State, states: list[str]) -> State:
    """EC2 names this call's list `Filter`, not `Filters` (EC2 API, DescribeNatGateways; 2026-11-26)."""
    asked = {"Filter": [tagged, {"Name": "state", "Values": states}]}
    return {**ec2.task("describeNatGateways", asked), "ResultPath": "$.Network"}


def _addresses(ec2: _Ec2, cluster_id: str, tagged: State) -> dict[str, State]:
    """Releases every elastic IP of the cluster, then looks whether anything of the network still bills.

    The IPs are found by their tags: descriptions of 256 addresses would not fit into one answer.
    """
    release = ec2.end(ADDRESS, retries=True)
    left = {**ec2.task("describeAddresses", {"Filters": [tagged]}), "ResultPath": "$.Network"}
    return {
        "Addresses": {**ec2.ids(cluster_id, ADDRESS), "ResultPath": "$.Network", "Next": "AnyAddresses"},
        "AnyAddresses": _if_any("$.Network.Tags[0]", then="Release", otherwise="AddressesLeft"),
        "Release": {**_each("$.Network.Tags[*].ResourceId", "ReleaseOne", release), "Next": "AddressesLeft"},
        "AddressesLeft": {**left, "Next": "AnyAddressLeft"},
        "AnyAddressLeft": _if_any("$.Network.Addresses[0]", then="Kept", otherwise="GatewaysLeft"),
        "GatewaysLeft": {**_look_at_gateways(ec2, tagged, _BILLING_GATEWAY), "Next": "AnyGatewayLeft"},
        "AnyGatewayLeft": _if_any("$.Network.NatGateways[0]", then="Kept", otherwise="WasTrouble"),
    }


def _each(items: str, name: str, task: State) -> State:
    """One task for each item; a refusal stops none of the others."""
    caught = {"ErrorEquals": ["States.ALL"], "ResultPath": None, "Next": f"{name}Refused"}
    state = {**task, "ResultPath": None, "Catch": [caught], "End": True}
    states = {name: state, f"{name}Refused": {"Type": "Pass", "End": True}}
    return {**_map(items, {"StartAt": name, "States": states}), "ResultPath": None}


def _map(items: str, each: State) -> State:
    """Runs the states `each` once for each item, side by side.

    The items are taken by InputPath: ItemsPath has to be a reference path, which has no `[*]` (developer guide,
    "ItemsPath"; 2026-11-22).
    """
    processor = {"ProcessorConfig": {"Mode": "INLINE"}, **each}
    return {"Type": "Map", "InputPath": items, "MaxConcurrency": PARALLEL, "ItemProcessor": processor}


def _if_any(path: str, *, then: str, otherwise: str) -> State:
    """A choice by whether a path is there: an empty list has no first item."""
    return {"Type": "Choice", "Choices": [{"Variable": path, "IsPresent": True, "Next": then}], "Default": otherwise}


def _if(path: str, test: State, *, then: str, otherwise: str) -> State:
    return {"Type": "Choice", "Choices": [_rule(path, test, then=then)], "Default": otherwise}


def _rule(path: str, test: State, *, then: str) -> State:
    """A rule that holds where a path is there, is not null, and passes the test."""
    tests = [{"Variable": path, **condition} for condition in ({"IsPresent": True}, {"IsNull": False}, test)]
    return {"And": tests, "Next": then}
