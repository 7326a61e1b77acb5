"""What a DryRun of the state machine says of each machine."""

from __future__ import annotations

import json

from clusterctl.cloud.deadline_proof import NOT_FOUND, answers, refusals, without_gone
from clusterctl.cloud.instances import InstanceState

WOULD = "Request would have succeeded, but DryRun flag is set. (Service: Ec2, Status Code: 412, Request ID: x)"
DENIED = "You are not authorized to perform this operation. (Service: Ec2, Status Code: 403, Request ID: x)"


def said(**causes: str) -> str:
    rows = [{"Id": id, "Answer": {"Error": "Ec2.Ec2Exception", "Cause": cause}} for id, cause in causes.items()]
    return json.dumps(rows)


def test_nothing_is_left_when_every_machine_would_end() -> None:
    assert refusals(answers(said(a=WOULD, b=WOULD)), ["a", "b"]) == {}


def test_a_refusal_a_silence_and_a_machine_that_was_not_found_are_named() -> None:
    output = json.dumps([*json.loads(said(a=WOULD, b=DENIED)), {"Id": "c"}])
    left = refusals(answers(output), ["a", "b", "c", "d"])
    assert left == {"b": DENIED, "c": "it said nothing", "d": NOT_FOUND}


def test_an_execution_that_found_no_machine_leaves_all() -> None:
    output = json.dumps({"DryRun": True, "Wave": {"Tags": []}})
    assert refusals(answers(output), ["a"]) == {"a": NOT_FOUND}


def test_a_machine_that_died_meanwhile_needs_no_end() -> None:
    seen = [
        InstanceState(instance_id=id, slot=0, state=state, private_ip=None, public_ip=None, reason=None)
        for id, state in (("a", "terminated"), ("b", "running"), ("c", "shutting-down"))
    ]
    left = dict.fromkeys("abcd", NOT_FOUND)
    assert without_gone(left, seen) == {"b": NOT_FOUND, "d": NOT_FOUND}
