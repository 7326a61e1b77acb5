"""What a DryRun of the state machine says of each machine."""

from __future__ import annotations

import json

import pytest
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.deadline_proof import NOT_FOUND, answers, not_ended, refusals, without_gone
from clusterctl.cloud.instances import InstanceState
from clusterctl_infra.errors import CloudError
from clusterctl_infra.names import ID_TAG, SLOT_TAG, guard_name
from clusterctl_infra.plan.ending_machine import DRY_RUN_INPUT

from tests.unit.cli.cloud.fake_answers import clients_of
from tests.unit.cli.cloud.fake_state_machine import DENIED, ID, WOULD, StateMachine, output_of, succeeded

OVER = -60.0
"""A timeout that has expired before anything is asked."""


def test_nothing_is_left_when_every_machine_would_end() -> None:
    assert refusals(answers(output_of(a=WOULD, b=WOULD)), ["a", "b"]) == {}


def test_a_refusal_a_silence_and_a_machine_that_was_not_found_are_named() -> None:
    output = json.dumps([*json.loads(output_of(a=WOULD, b=DENIED)), {"Id": "c"}])
    left = refusals(answers(output), ["a", "b", "c", "d"])
    assert left == {"b": DENIED, "c": "it said nothing", "d": NOT_FOUND}


GONE = "NatGateway nat-0 was not found (Service: Ec2, Status Code: 400, Request ID: x)"


def test_of_what_is_no_machine_only_a_missing_right_is_told() -> None:
    causes = {"a": WOULD, "nat-0": GONE, "eipalloc-0": WOULD, "cr-0": DENIED}
    assert refusals(causes, ["a"]) == {"cr-0": DENIED}


def test_an_execution_that_found_no_machine_leaves_all() -> None:
    output = json.dumps({"DryRun": True, "Wave": {"Tags": []}})
    assert refusals(answers(output), ["a"]) == {"a": NOT_FOUND}


def test_a_machine_that_died_meanwhile_needs_no_end() -> None:
    seen = [
        InstanceState(instance_id=id, slot=0, state=state, private_ip=None, public_ip=None, reason=None)
        for id, state in (("i-a", "terminated"), ("i-b", "running"), ("i-c", "shutting-down"))
    ]
    left = dict.fromkeys(["i-a", "i-b", "i-c", "i-d", "nat-0", "nat-1"], NOT_FOUND)
    known = {"i-a", "i-b", "i-c", "i-d", "nat-1"}
    assert without_gone(left, seen, known) == dict.fromkeys(["i-b", "i-d", "nat-1"], NOT_FOUND)


def asking(machine: StateMachine, *, state: str = "running") -> Clients:
    """Clients of a region with this state machine, and one instance in this state."""
    tags = [{"Key": ID_TAG, "Value": ID}, {"Key": SLOT_TAG, "Value": "0"}]
    row = {"InstanceId": "a", "State": {"Name": state}, "Tags": tags}
    found: dict[tuple[str, str], list[dict[str, object]]] = {
        ("describe_instances", "Reservations"): [{"Instances": [row]}],
        ("describe_nat_gateways", "NatGateways"): [{"NatGatewayId": "nat-0"}],
    }
    return clients_of({("us-west-2", *call): rows for call, rows in found.items()}, sfn=machine)


def test_a_machine_whose_tag_is_found_late_is_tried_again() -> None:
    machine, pauses = StateMachine([succeeded(), {"status": "RUNNING"}, succeeded(a=WOULD)]), list[None]()
    assert not_ended(asking(machine), ID, ["a"], pause=lambda: pauses.append(None)) == {}
    assert machine.started == [DRY_RUN_INPUT] * 2
    assert len(pauses) == 2, "before the second try, and while that was under way"


@pytest.mark.parametrize(("state", "left"), [("running", {"a": NOT_FOUND}), ("terminated", {})])
def test_one_that_is_never_found_is_named_unless_it_is_gone(state: str, left: dict[str, str]) -> None:
    machine = StateMachine([succeeded()])
    assert not_ended(asking(machine, state=state), ID, ["a"], pause=lambda: None, timeout_s=OVER) == left


def test_what_aws_refuses_is_told_at_once_unless_it_is_gone() -> None:
    machine = StateMachine([succeeded(**{"a": DENIED, "nat-0": DENIED, "nat-1": DENIED})])
    assert not_ended(asking(machine), ID, ["a"], pause=lambda: None) == {"a": DENIED, "nat-0": DENIED}


@pytest.mark.parametrize(
    ("name", "looks", "message", "code"),
    [
        (guard_name("ba9876543210"), [], f"no state machine {guard_name(ID)}", "StateMachineDoesNotExist"),
        (guard_name(ID), [{"status": "FAILED", "error": "States.Runtime", "cause": "no"}], ": no", "States.Runtime"),
        (guard_name(ID), [{"status": "RUNNING"}], "is still under way", "Timeout"),
    ],
    ids=["another cluster's alone", "it failed", "it takes too long"],
)
def test_where_nobody_can_say_that_is_a_failure_and_no_proof(
    name: str, looks: list[dict[str, str]], message: str, code: str
) -> None:
    machine = StateMachine([*looks], name=name)
    with pytest.raises(CloudError, match=message) as refused:
        not_ended(asking(machine), ID, ["a"], pause=lambda: None, timeout_s=OVER)
    assert refused.value.code == code
