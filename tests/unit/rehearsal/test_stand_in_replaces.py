"""Which changed input makes a new resource: as the Terraform provider's sources say."""

from __future__ import annotations

from typing import Any

import pytest
from clusterctl_infra.provider.property_values import UNKNOWN
from clusterctl_rehearsal.plugin.difference import difference
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.launch import LAUNCH_TEMPLATE
from clusterctl_rehearsal.region.types import network
from clusterctl_rehearsal.region.types.addresses import EIP_ASSOCIATION
from clusterctl_rehearsal.region.types.capacity import PLACEMENT_GROUP
from clusterctl_rehearsal.region.types.identity import INSTANCE_PROFILE, ROLE, ROLE_POLICY
from clusterctl_rehearsal.region.types.security import INGRESS_RULE, KEY_PAIR
from clusterctl_rehearsal.region.types.table import TYPES

# Each read in the file that the type's row names, in hashicorp/terraform-provider-aws: ForceNew of the SDK's schemas,
# RequiresReplace of the framework's, and what CustomizeDiff or ModifyPlan adds (ec2_instance.go:
# launch_template.version; vpc_security_group_ingress_rule.go: another kind of source).
NEW_RESOURCE: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (network.VPC, {"cidrBlock": "10.0.0.0/16"}, {"cidrBlock": "10.1.0.0/16"}),
    (network.SUBNET, {"vpcId": "vpc-1"}, {"vpcId": "vpc-2"}),
    (network.SUBNET, {"availabilityZone": "a"}, {"availabilityZone": "b"}),
    (network.CIDR_RESERVATION, {"cidrBlock": "10.0.8.0/21"}, {"cidrBlock": "10.0.0.0/21"}),
    (network.ROUTE_TABLE, {"vpcId": "vpc-1"}, {"vpcId": "vpc-2"}),
    (network.ROUTE, {"destinationCidrBlock": "0.0.0.0/0"}, {"destinationCidrBlock": "10.0.0.0/8"}),
    (network.ROUTE_TABLE_ASSOCIATION, {"subnetId": "subnet-1"}, {"subnetId": "subnet-2"}),
    (network.NAT_GATEWAY, {"subnetId": "subnet-1"}, {"subnetId": "subnet-2"}),
    (network.VPC_ENDPOINT, {"serviceName": "s3"}, {"serviceName": "ec2"}),
    (network.SECURITY_GROUP, {"description": "one"}, {"description": "two"}),
    (INGRESS_RULE, {"securityGroupId": "sg-1"}, {"securityGroupId": "sg-2"}),
    (INGRESS_RULE, {"cidrIpv4": "10.0.0.0/8"}, {"referencedSecurityGroupId": "sg-1"}),
    (KEY_PAIR, {"publicKey": "ssh-ed25519 A"}, {"publicKey": "ssh-ed25519 B"}),
    (network.EIP, {"domain": "vpc"}, {"domain": "standard"}),
    (EIP_ASSOCIATION, {"networkInterfaceId": "eni-1"}, {"networkInterfaceId": "eni-2"}),
    (PLACEMENT_GROUP, {"strategy": "cluster"}, {"strategy": "spread"}),
    (CAPACITY_RESERVATION, {"instanceType": "p5.48xlarge"}, {"instanceType": "p4d.24xlarge"}),
    (LAUNCH_TEMPLATE, {"name": "one"}, {"name": "two"}),
    (network.LUSTRE_LINK, {"dataRepositoryPath": "s3://a"}, {"dataRepositoryPath": "s3://b"}),
    (network.LUSTRE_LINK, {"fileSystemPath": "/a"}, {"fileSystemPath": "/b"}),
    (network.INSTANCE, {"ami": "ami-1"}, {"ami": "ami-2"}),
    (network.INSTANCE, {"privateIp": "10.0.8.0"}, {"privateIp": "10.0.8.1"}),
    (network.INSTANCE, {"launchTemplate": {"id": "lt-1"}}, {"launchTemplate": {"id": "lt-2"}}),
    (
        network.INSTANCE,
        {"launchTemplate": {"id": "lt-1", "version": "1"}},
        {"launchTemplate": {"id": "lt-1", "version": "2"}},
    ),
    (
        network.INSTANCE,
        {"launchTemplate": {"id": "lt-1", "version": "1"}},
        {"launchTemplate": {"id": "lt-1", "version": UNKNOWN}},
    ),
    (network.INSTANCE, {"userData": "one"}, {"userData": "two", "userDataReplaceOnChange": True}),
    (ROLE, {"name": "one"}, {"name": "two"}),
    (ROLE_POLICY, {"role": "one"}, {"role": "two"}),
    (INSTANCE_PROFILE, {"path": "/"}, {"path": "/clusterctl/"}),
]
IN_PLACE: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (network.VPC, {"enableDnsHostnames": True}, {"enableDnsHostnames": False}),
    (network.SUBNET, {"mapPublicIpOnLaunch": True}, {"mapPublicIpOnLaunch": False}),
    (network.INTERNET_GATEWAY, {"vpcId": "vpc-1"}, {"vpcId": "vpc-2"}),
    (network.ROUTE, {"gatewayId": "igw-1"}, {"gatewayId": "igw-2"}),
    (network.ROUTE_TABLE_ASSOCIATION, {"routeTableId": "rtb-1"}, {"routeTableId": "rtb-2"}),
    (INGRESS_RULE, {"cidrIpv4": "10.0.0.0/8"}, {"cidrIpv4": "10.1.0.0/16"}),
    (network.EIP, {"instance": "i-1"}, {"instance": UNKNOWN}),
    (network.EIP, {"networkInterface": "eni-1"}, {"networkInterface": UNKNOWN}),
    (CAPACITY_RESERVATION, {"instanceCount": 4}, {"instanceCount": 6}),
    (CAPACITY_RESERVATION, {"endDate": "2027-01-01T00:00:00Z"}, {"endDate": "2027-01-02T00:00:00Z"}),
    (LAUNCH_TEMPLATE, {"userData": "b25l"}, {"userData": "dHdv"}),
    (LAUNCH_TEMPLATE, {"networkInterfaces": []}, {"networkInterfaces": [{"deviceIndex": 0}]}),
    (network.LUSTRE_LINK, {"s3": {"autoImportPolicy": {"events": ["NEW"]}}}, {"s3": {}}),
    (network.INSTANCE, {"tags": {"a": "1"}}, {"tags": {"a": "2"}}),
    (network.INSTANCE, {"instanceType": "p5.48xlarge"}, {"instanceType": "p5en.48xlarge"}),
    (network.INSTANCE, {"userData": "one"}, {"userData": "two"}),
    (ROLE, {"assumeRolePolicy": "{}"}, {"assumeRolePolicy": "[]"}),
    (INSTANCE_PROFILE, {"role": "one"}, {"role": "two"}),
]


@pytest.mark.parametrize(("token", "old", "new"), NEW_RESOURCE)
def test_a_change_that_makes_a_new_resource(token: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    assert difference(TYPES[token], old, new).replacing


@pytest.mark.parametrize(("token", "old", "new"), IN_PLACE)
def test_a_change_in_place(token: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    found = difference(TYPES[token], old, new)
    assert found.changed
    assert not found.replacing


@pytest.mark.parametrize("row", TYPES.values(), ids=lambda row: row.kind)
def test_every_type_names_the_source_of_its_replace_list(row: Any) -> None:
    assert row.source.startswith("internal/service/")
    assert row.source.endswith(".go")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"tags": {}}, {}),
        ({"instanceMatchCriteria": "open"}, {}),
        ({"endDate": None}, {}),
        ({"instanceCount": 4}, {"instanceCount": 4.0}),
    ],
)
def test_what_is_empty_or_the_default_is_no_difference(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert difference(TYPES[CAPACITY_RESERVATION], old, new).changed == ()


def test_a_chosen_name_that_stays_is_given_up_first() -> None:
    row = TYPES[PLACEMENT_GROUP]
    old, new = {"name": "mine", "strategy": "cluster"}, {"name": "mine", "strategy": "spread"}
    assert difference(row, old, new).delete_first
    assert not difference(row, old, {**new, "name": "other"}).delete_first
