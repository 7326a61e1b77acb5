"""Without the rights to read and cancel spot requests, no spot machine is made."""

from __future__ import annotations

import pytest
from clusterctl.lifecycle.spot_checks import refuse_without_rights
from clusterctl_infra.errors import CloudError

from tests.unit.cli.cloud.fake_answers import clients_of
from tests.unit.infra.plan.plan_cases import a_plan

READ, CANCEL = ("ec2", "describe_spot_instance_requests"), ("ec2", "cancel_spot_instance_requests")
DENIED = "UnauthorizedOperation"


@pytest.mark.parametrize(
    ("refused", "named"),
    [
        ({CANCEL: DENIED, READ: "DryRunOperation"}, "need ec2:CancelSpotInstanceRequests: "),
        ({READ: DENIED}, "need ec2:DescribeSpotInstanceRequests: "),
        ({READ: DENIED, CANCEL: DENIED}, "DescribeSpotInstanceRequests and ec2:CancelSpotInstanceRequests: "),
    ],
)
def test_a_missing_right_is_named_before_anything_is_made(refused: dict[tuple[str, str], str], named: str) -> None:
    with pytest.raises(CloudError) as caught:
        refuse_without_rights(clients_of({}, refused=refused), a_plan(capacity="spot"))
    assert named in caught.value.message
    assert caught.value.code == DENIED


@pytest.mark.parametrize("code", ["DryRunOperation", "InvalidSpotInstanceRequestID.NotFound", "RequestLimitExceeded"])
def test_what_is_no_refusal_of_the_right_goes_on(code: str) -> None:
    refuse_without_rights(clients_of({}, refused={READ: code, CANCEL: code}), a_plan(capacity="spot"))


def test_machines_on_demand_need_neither() -> None:
    refuse_without_rights(clients_of({}, refused={READ: DENIED, CANCEL: DENIED}), a_plan())
