"""What an account may have of machines on demand is asked before anything is made."""

from __future__ import annotations

from typing import Any  # answers as botocore gives them

import pytest
from botocore.stub import Stubber
from clusterctl.cloud.clients import AwsClients
from clusterctl.cloud.quotas import quota_code, refuse_beyond, vcpu_limit
from clusterctl_infra.catalog.instance import InstanceType
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import CloudError

from tests.unit.cli.cloud.fake_clients import FakeClients

ASKED = {"ServiceCode": "ec2", "QuotaCode": "L-417A185B"}


def p5() -> InstanceType:
    row = load_catalog().instance_type("p5.48xlarge")
    assert row is not None
    return row


@pytest.mark.parametrize(
    ("family", "code"),
    [
        ("p5", "L-417A185B"),
        ("p6-b200", "L-417A185B"),
        ("g6e", "L-DB2E81BA"),
        ("gr6", "L-DB2E81BA"),
        ("c5n", "L-1216C47A"),
        ("trn2", None),
        ("inf2", None),
        ("hpc7a", None),
        ("u-6tb1", None),
    ],
)
def test_each_family_has_its_quota_and_none_has_another_ones(family: str, code: str | None) -> None:
    assert quota_code(family) == code


def test_every_type_of_the_catalog_has_a_quota() -> None:
    families = {name.partition(".")[0] for name in load_catalog().names()}
    assert {family for family in families if quota_code(family) is None} == set()


def test_of_a_family_without_a_known_quota_nobody_is_asked() -> None:
    assert vcpu_limit(FakeClients(), "trn2") is None


@pytest.mark.parametrize(
    ("answer", "limit"),
    [({"Quota": {"Value": 768.0}}, 768), ({"Quota": {"Value": 0.0}}, 0), ({"Quota": {}}, None), ({}, None)],
)
def test_aws_says_how_many_there_may_be(answer: dict[str, Any], limit: int | None) -> None:
    clients = AwsClients(region="us-west-2", endpoint_url="http://127.0.0.1:1")
    with Stubber(clients.service_quotas) as aws:
        aws.add_response("get_service_quota", answer, ASKED)
        assert vcpu_limit(clients, "p5") == limit


@pytest.mark.parametrize("code", ["AccessDeniedException", "NoSuchResourceException", "TooManyRequestsException"])
def test_what_aws_does_not_say_keeps_nobody_from_an_up(code: str) -> None:
    clients = AwsClients(region="us-west-2", endpoint_url="http://127.0.0.1:1")
    with Stubber(clients.service_quotas) as aws:
        aws.add_client_error("get_service_quota", code, expected_params=ASKED)
        limit = vcpu_limit(clients, "p5")
    assert limit is None
    refuse_beyond(limit, p5(), 256, region="us-west-2", is_rehearsal=False)


def test_what_fits_is_let_through_and_what_does_not_is_refused_with_the_numbers() -> None:
    refuse_beyond(768, p5(), 4, region="us-west-2", is_rehearsal=False)
    with pytest.raises(
        CloudError, match=r"4 × p5\.48xlarge are 768 vCPUs, and this account may have 767 of"
    ) as refused:
        refuse_beyond(767, p5(), 4, region="us-west-2", is_rehearsal=False)
    assert refused.value.code == "VcpuLimitExceeded"
    assert refused.value.hint is not None
    assert refused.value.hint.endswith("--quota-code L-417A185B --desired-value 768")


def test_in_a_rehearsal_the_quota_is_a_fault_that_ends() -> None:
    with pytest.raises(CloudError) as refused:
        refuse_beyond(0, p5(), 2, region="us-west-2", is_rehearsal=True)
    assert refused.value.hint == "clusterctl rehearse fault quota vcpus=384"
