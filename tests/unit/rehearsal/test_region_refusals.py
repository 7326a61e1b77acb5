"""The region refuses what AWS refuses, with AWS's code."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.launch import LAUNCH_TEMPLATE
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.types import network
from clusterctl_rehearsal.region.types.capacity import PLACEMENT_GROUP
from clusterctl_rehearsal.region.types.identity import INSTANCE_PROFILE, ROLE
from clusterctl_rehearsal.region.types.security import EGRESS_RULE, INGRESS_RULE, KEY_PAIR

from tests.unit.rehearsal.small_region import EVERYTHING, TRUST, SmallRegion, interface

Cards = Callable[[Record, Record], list[dict[str, Any]]]


def _code(act: Callable[[], object]) -> str:
    with pytest.raises(AwsError) as caught:
        act()
    return caught.value.code


TEMPLATES: dict[str, tuple[str, dict[str, Any]]] = {
    "an unknown type": ("InvalidParameterValue", {"instanceType": "p9.48xlarge"}),
    "no image": ("MissingParameter", {"imageId": None}),
    "an image id that is none": ("InvalidAMIID.Malformed", {"imageId": "ubuntu"}),
    "17 KiB of user-data": (
        "InvalidParameterValue",
        {"userData": base64.b64encode(bytes(16385)).decode()},
    ),
    "a key that is not there": ("InvalidKeyPair.NotFound", {"keyName": "mine"}),
    "a profile that is not there": ("InvalidParameterValue", {"iamInstanceProfile": {"name": "mine"}}),
    "a placement group that is not there": ("InvalidPlacementGroup.Unknown", {"placement": {"groupName": "mine"}}),
    "another zone than the subnet's": ("InvalidParameterValue", {"placement": {"availabilityZone": "us-west-2a"}}),
    "a reservation that is not there": (
        "InvalidCapacityReservationId.NotFound",
        {"capacityReservationSpecification": {"capacityReservationTarget": {"capacityReservationId": "cr-1"}}},
    ),
}


@pytest.mark.parametrize(("code", "data"), TEMPLATES.values(), ids=TEMPLATES.keys())
def test_a_launch_is_refused_with_awss_code(world: SmallRegion, code: str, data: dict[str, Any]) -> None:
    assert _code(lambda: world.node(**data)) == code
    assert list(world.store.live(network.INSTANCE)) == []


LAYOUTS: dict[str, tuple[str, str, Cards]] = {
    "efa-only as the primary": (
        "p5.48xlarge",
        "InvalidParameterCombination",
        lambda s, g: [interface(s, g, interfaceType="efa-only")],
    ),
    "no primary": ("p5.48xlarge", "InvalidParameterCombination", lambda s, g: [interface(s, g, networkCardIndex=1)]),
    "two in one seat": ("p5.48xlarge", "InvalidParameterValue", lambda s, g: [interface(s, g), interface(s, g)]),
    "EFA on a type without": (
        "t3.micro",
        "InvalidParameterCombination",
        lambda s, g: [interface(s, g, interfaceType="efa")],
    ),
    "a card that is not there": (
        "p5.48xlarge",
        "InvalidParameterValue",
        lambda s, g: [interface(s, g), interface(s, g, networkCardIndex=32)],
    ),
    "three on a card of two": (
        "p5.48xlarge",
        "AttachmentLimitExceeded",
        lambda s, g: [interface(s, g, deviceIndex=i) for i in range(3)],
    ),
    "EFA on card 0 of a B300": (
        "p6-b300.48xlarge",
        "InvalidParameterCombination",
        lambda s, g: [interface(s, g), interface(s, g, deviceIndex=1, interfaceType="efa-only")],
    ),
    "a public address with two interfaces": (
        "p5.48xlarge",
        "InvalidParameterCombination",
        lambda s, g: [interface(s, g, associatePublicIpAddress="true"), interface(s, g, deviceIndex=1)],
    ),
    "an address outside of the subnet": (
        "p5.48xlarge",
        "InvalidParameterValue",
        lambda s, g: [interface(s, g, privateIpAddress="10.0.16.1")],
    ),
    "an address that AWS keeps": (
        "p5.48xlarge",
        "InvalidParameterValue",
        lambda s, g: [interface(s, g, privateIpAddress="10.0.0.3")],
    ),
    "the last address": (
        "p5.48xlarge",
        "InvalidParameterValue",
        lambda s, g: [interface(s, g, privateIpAddress="10.0.15.255")],
    ),
}


@pytest.mark.parametrize(("kind", "code", "cards"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_an_interface_layout_is_refused_with_awss_code(world: SmallRegion, kind: str, code: str, cards: Cards) -> None:
    _, subnet, group = world.network()
    template = world.template(subnet, group, instanceType=kind, networkInterfaces=cards(subnet, group))
    assert _code(lambda: world.launch(template)) == code


def test_a_security_group_that_is_not_there_is_refused(world: SmallRegion) -> None:
    _, subnet, group = world.network()
    card = interface(subnet, group, securityGroups=["sg-0"])
    template = world.template(subnet, group, networkInterfaces=[card])
    assert _code(lambda: world.launch(template)) == "InvalidGroup.NotFound"


def test_an_address_in_use_is_refused(world: SmallRegion) -> None:
    _, subnet, group = world.network()
    template = world.template(subnet, group)
    world.launch(template)
    assert _code(lambda: world.launch(template)) == "InvalidIPAddress.InUse"


def test_a_subnet_may_be_given_once_only(world: SmallRegion) -> None:
    _, subnet, group = world.network()
    template = world.template(subnet, group)
    assert _code(lambda: world.launch(template, subnetId=subnet.id)) == "InvalidParameterCombination"


def test_every_type_of_the_catalog_takes_the_layout_that_the_catalog_gives_it(tmp_path: Path) -> None:
    world = SmallRegion(tmp_path / "rehearsal")
    _, subnet, group = world.network()
    for slot, name in enumerate(world.region.catalog.names()):
        kind = world.region.catalog.instance_type(name)
        assert kind is not None
        cards = [
            interface(subnet, group, networkCardIndex=card, deviceIndex=device, interfaceType=what)
            for card, device, what in kind.interfaces()
        ]
        template = world.template(subnet, group, slot, instanceType=name, networkInterfaces=cards)
        assert world.launch(template).state == "running"


CREATES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a VPC larger than /16": ("InvalidVpc.Range", network.VPC, {"cidrBlock": "10.0.0.0/8"}),
    "a VPC of no network": ("InvalidParameterValue", network.VPC, {"cidrBlock": "ten"}),
    "a subnet of no VPC": ("InvalidVpcID.NotFound", network.SUBNET, {"vpcId": "vpc-0", "cidrBlock": "10.0.0.0/20"}),
    "a reservation in the past": (
        "InvalidParameterValue",
        CAPACITY_RESERVATION,
        {**EVERYTHING[CAPACITY_RESERVATION], "endDateType": "limited", "endDate": "2020-01-01T00:00:00Z"},
    ),
    "an end without its kind": (
        "InvalidParameterCombination",
        CAPACITY_RESERVATION,
        {**EVERYTHING[CAPACITY_RESERVATION], "endDate": "2040-01-01T00:00:00Z"},
    ),
    "a reservation of an unknown type": (
        "InvalidInstanceType",
        CAPACITY_RESERVATION,
        {**EVERYTHING[CAPACITY_RESERVATION], "instanceType": "p9.48xlarge"},
    ),
    "a reservation in an unknown zone": (
        "InvalidParameterValue",
        CAPACITY_RESERVATION,
        {**EVERYTHING[CAPACITY_RESERVATION], "availabilityZone": "us-west-2x"},
    ),
    "a reservation in no placement group": (
        "InvalidPlacementGroup.Unknown",
        CAPACITY_RESERVATION,
        {**EVERYTHING[CAPACITY_RESERVATION], "placementGroupArn": "arn:nothing"},
    ),
    "a key that is none": ("InvalidKey.Format", KEY_PAIR, {"keyName": "mine", "publicKey": "hello"}),
    "user-data that is not base64": (
        "InvalidUserData.Malformed",
        LAUNCH_TEMPLATE,
        {"name": "train-0", "userData": "#!/bin/sh"},
    ),
    "a role that nobody may take": ("MalformedPolicyDocument", ROLE, {"name": "node", "assumeRolePolicy": "{}"}),
    "a tag of a role with a comma": (
        "ValidationError",
        ROLE,
        {"name": "node", "assumeRolePolicy": TRUST, "tags": {"teams": "a,b"}},
    ),
    "tags of a role that differ in case alone": (
        "InvalidInput",
        ROLE,
        {"name": "node", "assumeRolePolicy": TRUST, "tags": {"Name": "a", "name": "b"}},
    ),
    "a tag of a file system with a bracket": (
        "ValidationException",
        "aws:efs/fileSystem:FileSystem",
        {"tags": {"owner": "Ada (ML)"}},
    ),
    "a profile of no role": ("NoSuchEntity", INSTANCE_PROFILE, {"name": "node", "role": "node"}),
}


@pytest.mark.parametrize(("code", "token", "inputs"), CREATES.values(), ids=CREATES.keys())
def test_a_create_is_refused_with_awss_code(world: SmallRegion, code: str, token: str, inputs: dict[str, Any]) -> None:
    assert _code(lambda: world.make(token, **inputs)) == code


def test_a_subnet_outside_or_over_another_is_refused(world: SmallRegion) -> None:
    vpc, _, _ = world.network()
    assert _code(lambda: world.make(network.SUBNET, vpcId=vpc.id, cidrBlock="10.1.0.0/20")) == "InvalidSubnet.Range"
    assert _code(lambda: world.make(network.SUBNET, vpcId=vpc.id, cidrBlock="10.0.8.0/24")) == "InvalidSubnet.Conflict"


def test_what_is_in_use_is_not_deleted(world: SmallRegion) -> None:
    vpc, subnet, group = world.network()
    world.make(PLACEMENT_GROUP, name="neighbours", strategy="cluster")
    world.launch(world.template(subnet, group, placement={"groupName": "neighbours"}))
    role = world.make(ROLE, name="node", assumeRolePolicy=TRUST)
    world.make(INSTANCE_PROFILE, name="node", role=role.id)
    for token, id, code in (
        (network.VPC, vpc.id, "DependencyViolation"),
        (network.SUBNET, subnet.id, "DependencyViolation"),
        (network.SECURITY_GROUP, group.id, "DependencyViolation"),
        (PLACEMENT_GROUP, "neighbours", "InvalidPlacementGroup.InUse"),
        (ROLE, "node", "DeleteConflict"),
    ):
        with pytest.raises(AwsError) as caught:
            world.region.delete(token, id)
        assert caught.value.code == code


def test_a_groups_own_rules_end_with_it(world: SmallRegion) -> None:
    _, _, group = world.network()
    other = world.make(network.SECURITY_GROUP, vpcId=group.inputs["vpcId"], name="others")
    rule = {"securityGroupId": group.id, "ipProtocol": "-1"}
    world.make(INGRESS_RULE, **rule, referencedSecurityGroupId=group.id)
    from_other = world.make(INGRESS_RULE, **rule, referencedSecurityGroupId=other.id)
    assert _code(lambda: world.region.delete(network.SECURITY_GROUP, other.id)) == "DependencyViolation"
    world.region.delete(network.SECURITY_GROUP, group.id)
    assert world.store.get(INGRESS_RULE, from_other.id) is None


def test_names_and_rules_are_not_had_twice(world: SmallRegion) -> None:
    vpc, _, group = world.network()
    ssh: dict[str, Any] = {"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "cidrIpv4": "192.0.2.0/24"}
    rule = {"securityGroupId": group.id, **ssh}
    world.make(INGRESS_RULE, **rule)
    assert _code(lambda: world.make(INGRESS_RULE, **rule)) == "InvalidPermission.Duplicate"
    assert _code(lambda: world.make(network.SECURITY_GROUP, vpcId=vpc.id, name="nodes")) == "InvalidGroup.Duplicate"


def test_a_sixth_elastic_address_is_over_the_quota(world: SmallRegion) -> None:
    for _ in range(5):
        world.make(network.EIP, domain="vpc")
    assert _code(lambda: world.make(network.EIP, domain="vpc")) == "AddressLimitExceeded"


def test_an_unknown_type_is_refused_by_name(world: SmallRegion) -> None:
    with pytest.raises(StandInRefusal, match=r"^the stand-in does not know aws:ec2\.Fleet yet$"):
        world.make("aws:ec2/fleet:Fleet")


def test_the_strict_mode_wants_the_rules_that_efa_needs(tmp_path: Path) -> None:
    world = SmallRegion(tmp_path / "strict", strict=True)
    _, subnet, group = world.network()
    cards = [interface(subnet, group), interface(subnet, group, deviceIndex=1, interfaceType="efa-only")]
    template = world.template(subnet, group, networkInterfaces=cards)
    with pytest.raises(StandInRefusal, match=r"^strict \(ours.*all traffic in from the group itself"):
        world.launch(template)
    rule = {"securityGroupId": group.id, "ipProtocol": "-1", "referencedSecurityGroupId": group.id}
    world.make(INGRESS_RULE, **rule)
    with pytest.raises(StandInRefusal, match="all traffic out to the group itself"):
        world.launch(template)
    world.make(EGRESS_RULE, **rule)
    assert world.launch(template).state == "running"
