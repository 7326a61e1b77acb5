"""Which things of an account count as a cluster's own, and which calls end a thing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any  # rows of AWS

import clusterctl.cloud as cloud
import pytest
from botocore.session import Session
from clusterctl.cloud.resource import CloudResource
from clusterctl.cloud.resource_types import KINDS
from clusterctl_infra.names import ID_TAG, guard_name

from tests.unit.cli.cloud.fake_answers import clients_of

OWN, OTHER = "0123456789ab", "ba9876543210"
BY_NAME = {kind.name: kind for kind in KINDS}
Row = Callable[[str], dict[str, Any]]
"""Makes the row of a thing of the cluster with this id; with an empty id, of a thing that is no cluster's."""


def tagged(name: str, **more: Any) -> Row:
    """A thing with the cluster's tag; its own id, in the field `name`, ends with the cluster's."""

    def row(cluster_id: str) -> dict[str, Any]:
        tags = [{"Key": ID_TAG, "Value": cluster_id}] if cluster_id else []
        return {name: f"it-{cluster_id}", "Tags": tags, **more}

    return row


def named(name: str, **more: Any) -> Row:
    """A thing known by its name, in the field `name`; one of no cluster has a name that only begins like ours."""
    return lambda cluster_id: {name: guard_name(cluster_id) if cluster_id else "clusterctl-my-own", **more}


LISTED: dict[str, tuple[str, str, Row]] = {
    "capacity reservation": (
        "describe_capacity_reservations",
        "CapacityReservations",
        tagged("CapacityReservationId", InstanceType="p5.48xlarge"),
    ),
    "security group rule": (
        "describe_security_group_rules",
        "SecurityGroupRules",
        tagged("SecurityGroupRuleId", GroupId="sg-1"),
    ),
    "EFS file system": ("describe_file_systems", "FileSystems", tagged("FileSystemId")),
    "FSx file system": ("describe_file_systems", "FileSystems", tagged("FileSystemId")),
    "FSx data repository association": (
        "describe_data_repository_associations",
        "Associations",
        tagged("AssociationId", FileSystemId="fs-1"),
    ),
    "schedule": ("list_schedules", "Schedules", named("Name", GroupName="default")),
    "state machine": ("list_state_machines", "stateMachines", named("name", stateMachineArn="arn:it")),
    "instance profile": ("list_instance_profiles", "InstanceProfiles", named("InstanceProfileName")),
    "alarm": ("describe_alarms", "MetricAlarms", named("AlarmName")),
}


@pytest.mark.parametrize(("kind", "listed"), LISTED.items(), ids=LISTED.keys())
def test_another_clusters_and_a_persons_things_are_not_the_clusters(kind: str, listed: tuple[str, str, Row]) -> None:
    call, key, row = listed
    clients = clients_of({("us-west-2", call, key): [row(OWN), row(OTHER), row("")]})

    def owners(cluster_id: str | None) -> list[str | None]:
        return [resource.cluster_id for resource in BY_NAME[kind].find(clients, cluster_id)]

    assert owners(OWN) == [OWN]
    assert owners(None) == [OWN, OTHER]


def test_a_mount_target_is_of_whose_file_system_it_leads_to() -> None:
    file_systems = [tagged("FileSystemId")(OWN), tagged("FileSystemId")(OTHER)]
    clients = clients_of(
        {
            ("us-west-2", "describe_file_systems", "FileSystems"): file_systems,
            ("us-west-2", "describe_mount_targets", "MountTargets"): [{"MountTargetId": "fsmt-1"}],
        }
    )
    (target,) = BY_NAME["EFS mount target"].find(clients, OWN)
    assert (target.id, target.parent, target.cluster_id) == ("fsmt-1", f"it-{OWN}", OWN)


def test_of_a_route_table_what_somebody_made_in_it_is_ended_apart_and_the_rest_goes_with_it() -> None:
    table = {
        "RouteTableId": "rtb-1",
        "Tags": [{"Key": ID_TAG, "Value": OWN}],
        "Routes": [
            {"DestinationCidrBlock": "10.0.0.0/16", "Origin": "CreateRouteTable"},
            {"DestinationCidrBlock": "0.0.0.0/0", "Origin": "CreateRoute"},
            {"DestinationPrefixListId": "pl-1", "Origin": "CreateRoute"},
        ],
        "Associations": [
            {"Main": True, "RouteTableAssociationId": "rtbassoc-main"},
            {"Main": False, "RouteTableAssociationId": "rtbassoc-1"},
        ],
    }
    clients = clients_of({("us-west-2", "describe_route_tables", "RouteTables"): [table]})
    found = {kind: [part.id for part in BY_NAME[kind].find(clients, OWN)] for kind in BY_NAME if "route" in kind}
    assert found == {
        "route": ["rtb-1/0.0.0.0/0"],
        "route table association": ["rtbassoc-1"],
        "route table": ["rtb-1"],
    }


ENDED = {
    "a gateway is detached first": (
        CloudResource(kind="internet gateway", id="igw-1", parent="vpc-1"),
        ["detach_internet_gateway", "delete_internet_gateway"],
    ),
    "one that is attached to nothing is not": (
        CloudResource(kind="internet gateway", id="igw-1"),
        ["delete_internet_gateway"],
    ),
    "a profile loses its role first": (
        CloudResource(kind="instance profile", id="clusterctl-0123456789ab", parent="clusterctl-0123456789ab"),
        ["remove_role_from_instance_profile", "delete_instance_profile"],
    ),
    "an address in use is freed first": (
        CloudResource(kind="elastic IP", id="eipalloc-1", parent="eipassoc-1"),
        ["disassociate_address", "release_address"],
    ),
    "of a linked bucket the link goes alone": (
        CloudResource(kind="FSx data repository association", id="dra-1", parent="fs-1"),
        ["delete_data_repository_association"],
    ),
    "one that nothing uses is not": (CloudResource(kind="elastic IP", id="eipalloc-1"), ["release_address"]),
}


@pytest.mark.parametrize(("resource", "calls"), ENDED.values(), ids=ENDED.keys())
def test_what_holds_a_thing_is_taken_from_it_before_its_end(resource: CloudResource, calls: list[str]) -> None:
    clients = clients_of({})
    BY_NAME[resource.kind].delete(clients, resource)
    assert clients.asked == calls


def test_every_list_that_is_read_in_pages_has_pages_in_botocore() -> None:
    """A paginator that botocore lacks is an error when it is asked for; fakes have all."""
    called = re.compile(r"clients\.(\w+)\.get_paginator\(\s*\"(\w+)\"")
    text = "".join(path.read_text() for path in sorted(Path(cloud.__path__[0]).rglob("*.py")))
    asked = {(service, operation) for service, operation in called.findall(text) if service in BOTO_NAMES}
    assert len(asked) > 20
    session = Session()
    lacking = []
    for service, operation in sorted(asked):
        pages = session.get_paginator_model(BOTO_NAMES[service])
        name = "".join(word.capitalize() for word in operation.split("_"))
        try:
            pages.get_paginator(name)
        except ValueError:
            lacking.append(f"{service}.{operation}")
    assert lacking == []


BOTO_NAMES = {"ec2": "ec2", "iam": "iam", "efs": "efs", "fsx": "fsx", "scheduler": "scheduler", "sfn": "stepfunctions"}
