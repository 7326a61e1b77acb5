"""A state machine's calls of EC2: botocore would send, refuse and show the same."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any  # parameters and answers

import pytest
from botocore.exceptions import ParamValidationError
from botocore.validate import ParamValidator
from clusterctl_rehearsal.api.front import Api
from clusterctl_rehearsal.api.state_machine_calls import ec2_calls
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.types.network import INSTANCE
from clusterctl_rehearsal.states.failure import ExecutionFailed, TaskFailed

from tests.unit.rehearsal.api_client import SESSION, Client
from tests.unit.rehearsal.guarded_cluster import region_ec2
from tests.unit.rehearsal.small_region import CLUSTER_ID, EVERYTHING, REGION, TAGS, SmallRegion

OWN = [{"Name": "tag:clusterctl:id", "Values": [CLUSTER_ID]}]


@pytest.fixture
def cluster(world: SmallRegion) -> SmallRegion:
    """Two nodes and a reservation."""
    _, subnet, group = world.network()
    for slot in range(2):
        world.launch(world.template(subnet, group, slot))
    world.make(CAPACITY_RESERVATION, **EVERYTHING[CAPACITY_RESERVATION], tags=TAGS)
    return world


def with_moments(ours: Any, theirs: Any) -> Any:
    """Our answer with moments where botocore has them."""
    if isinstance(theirs, dict):
        return {key: with_moments(value, theirs.get(key)) for key, value in ours.items()}
    if isinstance(theirs, list):
        return [with_moments(value, other) for value, other in zip(ours, theirs, strict=True)]
    return datetime.fromisoformat(ours) if isinstance(theirs, datetime) else ours


@pytest.mark.parametrize(
    ("operation", "parameters", "part"),
    [
        ("DescribeInstances", {"Filters": OWN}, "Reservations"),
        ("DescribeTags", {"Filters": [{"Name": "key", "Values": ["clusterctl:id"]}]}, "Tags"),
        ("DescribeCapacityReservations", {"Filters": OWN}, "CapacityReservations"),
        ("DescribeNetworkInterfaces", {}, "NetworkInterfaces"),
        ("DescribeSubnets", {}, "Subnets"),
        ("DescribeNatGateways", {}, None),
        ("DescribeAddresses", {}, None),
    ],
)
def test_an_answer_is_the_one_that_botocore_reads(
    cluster: SmallRegion, operation: str, parameters: Mapping[str, Any], part: str | None
) -> None:
    ours = region_ec2(cluster)(operation[0].lower() + operation[1:], parameters)
    theirs = Client(cluster).ec2(operation, **parameters)
    theirs.pop("ResponseMetadata")
    assert part is None or ours[part]
    assert with_moments(ours, theirs) == theirs


def test_what_a_call_changes_is_changed(cluster: SmallRegion) -> None:
    ids = [row.id for row in cluster.store.live(INSTANCE)]
    answer = region_ec2(cluster)("terminateInstances", {"InstanceIds": ids})
    assert [row["CurrentState"] for row in answer["TerminatingInstances"]] == [
        {"Code": 32, "Name": "shutting-down"},
        {"Code": 32, "Name": "shutting-down"},
    ]


@pytest.mark.parametrize(
    ("action", "parameters"),
    [
        ("describeInstances", {"Filter": OWN, "MaxResult": 5}),
        ("describeInstances", {"Filters": {"Name": "x"}}),
        ("describeInstances", {"Filters": [{"Name": "x", "Value": ["y"]}]}),
        ("describeInstances", {"Filters": [{"Name": 5, "Values": [True]}]}),
        ("describeInstances", {"MaxResults": "5"}),
        ("terminateInstances", {"DryRun": "yes"}),
        ("cancelCapacityReservation", {}),
        ("createLaunchTemplate", {"LaunchTemplateName": "x", "LaunchTemplateData": {"TagSpecifications": [5]}}),
    ],
)
def test_parameters_that_no_sdk_sends_end_the_execution_in_botocore_s_words(
    world: SmallRegion, action: str, parameters: Mapping[str, Any]
) -> None:
    shape: Any = SESSION.get_service_model("ec2").operation_model(action[0].upper() + action[1:]).input_shape
    report = ParamValidator().validate(parameters, shape)
    with pytest.raises(ExecutionFailed) as failed:
        region_ec2(world)(action, parameters)
    assert (failed.value.error, failed.value.cause) == (
        "States.Runtime",
        str(ParamValidationError(report=report.generate_report())),
    )


def test_an_operation_that_ec2_does_not_have_ends_the_execution(world: SmallRegion) -> None:
    with pytest.raises(ExecutionFailed, match=r"States\.Runtime: ec2 has no operation EndEverything"):
        region_ec2(world)("endEverything", {})


@pytest.mark.parametrize(
    ("action", "parameters", "message"),
    [
        (
            "terminateInstances",
            {"InstanceIds": ["i-0000000000000000f"]},
            "The instance ID 'i-0000000000000000f' does not exist",
        ),
        ("describeInstances", {"MaxResults": 2}, "Value \\( 2 \\) for parameter maxResults is invalid"),
        ("describeHosts", {}, "The stand-in does not know ec2:DescribeHosts yet"),
    ],
)
def test_a_refusal_is_the_task_s_failure(
    world: SmallRegion, action: str, parameters: Mapping[str, Any], message: str
) -> None:
    pattern = rf"Ec2\.Ec2Exception: {message}.* \(Service: Ec2, Status Code: 400, Request ID: [0-9a-f-]{{36}}\)"
    with pytest.raises(TaskFailed, match=pattern):
        region_ec2(world)(action, parameters)


def test_a_fault_of_the_region_s_own_is_the_task_s_failure_too(
    world: SmallRegion, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise RuntimeError("something is wrong here")

    api = Api(region=world.region, before=broken, executions=world.executions, buckets=world.buckets)
    with pytest.raises(TaskFailed, match=r"Ec2\.Ec2Exception: .*Status Code: 500"):
        ec2_calls(api, REGION)("describeInstances", {})
    assert "RuntimeError: something is wrong here" in capsys.readouterr().err
