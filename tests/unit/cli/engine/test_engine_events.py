"""Lines of `pulumi up --json` become typed events; a refusal is said once, by AWS's own code."""

from __future__ import annotations

import json

import pytest
from clusterctl.engine.events import Finished, Message, Step, parse_event, refusals

INSTANCE = "aws:ec2/instance:Instance"
URN = f"urn:pulumi:dev::p::{INSTANCE}::c-1"
AWS_TEXT = (
    "creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 400, RequestID: x, "
    "api error InsufficientInstanceCapacity: We currently do not have sufficient p5.48xlarge capacity.\n\n"
)


def line(key: str, value: object) -> str:
    return json.dumps({"sequence": 1, "timestamp": 2, key: value})


def error(text: str, urn: str = URN) -> Message:
    event = parse_event(line("diagnosticEvent", {"urn": urn, "message": text, "severity": "error"}))
    assert isinstance(event, Message)
    return event


@pytest.mark.parametrize(
    ("key", "stage"), [("resourcePreEvent", "began"), ("resOutputsEvent", "done"), ("resOpFailedEvent", "failed")]
)
def test_a_step_is_known_by_its_stage(key: str, stage: str) -> None:
    new = {"custom": True, "id": "i-1", "inputs": {"tags": {"clusterctl:slot": "1"}}, "outputs": {}}
    event = parse_event(line(key, {"metadata": {"op": "create", "urn": URN, "type": INSTANCE, "new": new}}))
    assert event == Step(stage=stage, op="create", urn=URN, type=INSTANCE, id="i-1", inputs=new["inputs"])  # type: ignore[arg-type]


def test_a_deleted_resource_is_read_from_what_it_was() -> None:
    row = {"op": "delete", "urn": URN, "type": INSTANCE, "new": None, "old": {"id": "i-9"}}
    event = parse_event(line("resOutputsEvent", {"metadata": row}))
    assert isinstance(event, Step)
    assert event.id == "i-9"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "[]",
        line("cancelEvent", {}),
        line("somethingNew", {"a": 1}),
        line("diagnosticEvent", {"message": "x", "severity": "debug"}),
    ],
)
def test_what_says_nothing_is_left_out(text: str) -> None:
    assert parse_event(text) is None


def test_the_summary_says_how_it_went() -> None:
    row = {"durationSeconds": 4, "resourceChanges": {"create": 42}, "result": "succeeded"}
    assert parse_event(line("summaryEvent", row)) == Finished(succeeded=True, changes={"create": 42}, duration_s=4.0)


def test_awss_code_is_said_once_however_often_the_engine_says_it() -> None:
    problems = refusals([error(AWS_TEXT), error(f"1 error occurred:\n\t* {AWS_TEXT}"), error("update failed", urn="")])
    assert [(problem.code, problem.text) for problem in problems] == [
        ("InsufficientInstanceCapacity", "We currently do not have sufficient p5.48xlarge capacity.")
    ]


def test_awss_refusals_come_before_what_follows_from_them() -> None:
    problems = refusals([error("the program ended with an error"), error(AWS_TEXT)])
    assert [problem.code for problem in problems] == ["InsufficientInstanceCapacity", None]


def test_codes_with_a_dot_are_codes() -> None:
    problems = refusals([error("api error InvalidIPAddress.InUse: Address 10.0.8.1 is in use.")])
    assert problems[0].code == "InvalidIPAddress.InUse"


def test_a_warning_is_no_refusal() -> None:
    warning = parse_event(line("diagnosticEvent", {"message": "old", "severity": "warning"}))
    assert isinstance(warning, Message)
    assert refusals([warning]) == ()


@pytest.mark.parametrize(
    ("type", "state", "is_custom"),
    [
        ("aws:ec2/vpc:Vpc", {"custom": True, "id": "vpc-0"}, True),
        ("clusterctl:index:Identity", {"custom": True}, True),
        ("clusterctl:infra:Network", {}, False),
        ("pulumi:providers:aws", {"custom": True}, False),
        ("pulumi:pulumi:Stack", {}, False),
    ],
)
def test_components_and_providers_are_not_counted_as_resources(
    type: str, state: dict[str, object], is_custom: bool
) -> None:
    for which in ("new", "old"):
        step = parse_event(line("resOutputsEvent", {"metadata": {"op": "delete", "type": type, which: state}}))
        assert isinstance(step, Step)
        assert step.is_custom is is_custom
