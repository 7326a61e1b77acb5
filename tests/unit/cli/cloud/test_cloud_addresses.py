"""Elastic IPs are counted before anything is made."""

from __future__ import annotations

from typing import Any  # a configuration as YAML gives it

import pytest
from botocore.stub import Stubber
from clusterctl.cloud.clients import AwsClients
from clusterctl.cloud.quotas import AddressQuota, address_quota, addresses_wanted, refuse_addresses_beyond
from clusterctl_infra.errors import CloudError

from tests.unit.infra.plan.plan_cases import a_plan

VPC, SUBNET = "vpc-0123456789abcdef0", "subnet-0123456789abcdef0"


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, 4),
        ({"access": {"mode": "private"}}, 1),
        ({"access": {"mode": "private"}, "network": {"adopt": {"vpc_id": VPC, "node_subnet_id": SUBNET}}}, 0),
        ({"instance_type": "m5.large", "placement": "none"}, 0),
    ],
)
def test_nodes_with_several_interfaces_need_one_each(changes: dict[str, Any], wanted: int) -> None:
    assert addresses_wanted(a_plan(**changes)) == wanted


def test_what_fits_is_let_through_and_what_does_not_is_refused_with_the_numbers() -> None:
    refuse_addresses_beyond(AddressQuota(limit=5, taken=1), 4, region="us-west-2", is_rehearsal=False)
    with pytest.raises(CloudError, match="needs 4 elastic IPs, and others have 2 of the 5 that") as refused:
        refuse_addresses_beyond(AddressQuota(limit=5, taken=2), 4, region="us-west-2", is_rehearsal=False)
    assert refused.value.code == "AddressLimitExceeded"
    assert refused.value.hint is not None
    assert "--desired-value 6" in refused.value.hint
    with pytest.raises(CloudError) as refused:
        refuse_addresses_beyond(AddressQuota(limit=5, taken=2), 4, region="us-west-2", is_rehearsal=True)
    assert refused.value.hint == "clusterctl rehearse fault quota addresses=6"


OWN = {"PublicIp": "203.0.113.2", "Tags": [{"Key": "clusterctl:id", "Value": "0123456789ab"}]}
ASKED = {"ServiceCode": "ec2", "QuotaCode": "L-0263D0A3"}


def test_service_quotas_says_how_many_there_may_be() -> None:
    clients = AwsClients(region="us-west-2", endpoint_url="http://127.0.0.1:1")
    with Stubber(clients.ec2) as aws, Stubber(clients.service_quotas) as quotas:
        quotas.add_response("get_service_quota", {"Quota": {"Value": 20.0}}, ASKED)
        aws.add_response("describe_addresses", {"Addresses": [{"PublicIp": "203.0.113.1"}, OWN]})
        assert address_quota(clients, own_id="0123456789ab") == AddressQuota(limit=20, taken=1)


@pytest.mark.parametrize(("value", "quota"), [("20", AddressQuota(limit=20, taken=1)), ("none", None)])
def test_where_service_quotas_does_not_the_old_attribute_says_it(value: str, quota: AddressQuota | None) -> None:
    clients = AwsClients(region="us-west-2", endpoint_url="http://127.0.0.1:1")
    with Stubber(clients.ec2) as aws, Stubber(clients.service_quotas) as quotas:
        quotas.add_client_error("get_service_quota", "AccessDeniedException", expected_params=ASKED)
        aws.add_response("describe_addresses", {"Addresses": [{"PublicIp": "203.0.113.1"}, OWN]})
        attribute = {"AttributeName": "vpc-max-elastic-ips", "AttributeValues": [{"AttributeValue": value}]}
        aws.add_response("describe_account_attributes", {"AccountAttributes": [attribute]})
        if quota is None:
            with pytest.raises(CloudError, match="AWS said"):
                address_quota(clients, own_id="0123456789ab")
        else:
            assert address_quota(clients, own_id="0123456789ab") == quota
