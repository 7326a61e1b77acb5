"""The resource types of machines: instances, their volumes and interfaces, addresses, what holds capacity for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.instances import ALIVE, tags_of
from clusterctl.cloud.resource import CloudResource, Meter, ResourceType, by_id, is_of

if TYPE_CHECKING:
    from types_boto3_ec2.type_defs import InstanceTypeDef

RESERVATION = "capacity reservation"


def _instances(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    pages = clients.ec2.get_paginator("describe_instances").paginate(
        Filters=[by_id(cluster_id), {"Name": "instance-state-name", "Values": [*ALIVE, "shutting-down"]}]
    )
    for page in pages:
        for held in page["Reservations"]:
            for row in held.get("Instances", []):
                yield CloudResource(
                    kind="instance",
                    id=row["InstanceId"],
                    created_at=row.get("LaunchTime"),
                    tags=tags_of(row.get("Tags")),
                    meter=_machine_meter(row),
                )


def _machine_meter(row: InstanceTypeDef) -> Meter:
    """What a machine is billed by; spot machines have a unit of their own, since they never take a reserved place."""
    zone = row.get("Placement", {}).get("AvailabilityZone", "")
    is_spot = row.get("InstanceLifecycle") == "spot"
    return Meter(unit="spot machine" if is_spot else "machine", name=row["InstanceType"], zone=zone if is_spot else "")


def _end_instance(clients: Clients, found: CloudResource) -> None:
    clients.ec2.terminate_instances(InstanceIds=[found.id])


def reservations(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    """The cluster's capacity reservations that hold places, or will.

    The call documents no filter by tag (EC2 API in botocore 1.44; 2026-11-21), so all are asked for.
    """
    pages = clients.ec2.get_paginator("describe_capacity_reservations").paginate(
        Filters=[{"Name": "state", "Values": ["active", "pending", "scheduled", "assessing"]}]
    )
    for page in pages:
        for row in page["CapacityReservations"]:
            tags = tags_of(row.get("Tags"))
            if not is_of(tags, cluster_id):
                continue
            yield CloudResource(
                kind=RESERVATION,
                id=row["CapacityReservationId"],
                aliases=frozenset({row.get("CapacityReservationArn", "")}),
                created_at=row.get("CreateDate"),
                tags=tags,
                # A place in use bills as an instance.
                meter=Meter(unit="machine", name=row["InstanceType"], amount=row.get("AvailableInstanceCount", 0)),
            )


def _cancel_reservation(clients: Clients, found: CloudResource) -> None:
    clients.ec2.cancel_capacity_reservation(CapacityReservationId=found.id)


def addresses(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    """The cluster's elastic IPs."""
    for row in clients.ec2.describe_addresses(Filters=[by_id(cluster_id)])["Addresses"]:
        yield CloudResource(
            kind="elastic IP",
            id=row["AllocationId"],
            parent=row.get("AssociationId"),
            tags=tags_of(row.get("Tags")),
            meter=Meter(unit="address"),
        )


def _release_address(clients: Clients, found: CloudResource) -> None:
    if found.parent is not None:
        clients.ec2.disassociate_address(AssociationId=found.parent)
    clients.ec2.release_address(AllocationId=found.id)


def _interfaces(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    pages = clients.ec2.get_paginator("describe_network_interfaces").paginate(Filters=[by_id(cluster_id)])
    for page in pages:
        for row in page["NetworkInterfaces"]:
            attachment = row.get("Attachment") or {}
            # An address that Amazon owns came with the machine; an elastic IP is the account's, with a row of its own.
            is_lent = (row.get("Association") or {}).get("IpOwnerId") == "amazon"
            yield CloudResource(
                kind="network interface",
                id=row["NetworkInterfaceId"],
                attached_to=attachment.get("InstanceId"),
                tags=tags_of(row.get("TagSet")),
                meter=Meter(unit="address") if is_lent else None,
            )


def _delete_interface(clients: Clients, found: CloudResource) -> None:
    clients.ec2.delete_network_interface(NetworkInterfaceId=found.id)


def _volumes(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    for page in clients.ec2.get_paginator("describe_volumes").paginate(Filters=[by_id(cluster_id)]):
        for row in page["Volumes"]:
            holders = [attachment.get("InstanceId") for attachment in row.get("Attachments", [])]
            yield CloudResource(
                kind="volume",
                id=row["VolumeId"],
                attached_to=holders[0] if holders else None,
                created_at=row.get("CreateTime"),
                tags=tags_of(row.get("Tags")),
                meter=Meter(unit="disk GiB", amount=row.get("Size", 0)),
            )


def _delete_volume(clients: Clients, found: CloudResource) -> None:
    clients.ec2.delete_volume(VolumeId=found.id)


def _templates(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    pages = clients.ec2.get_paginator("describe_launch_templates").paginate(Filters=[by_id(cluster_id)])
    for page in pages:
        for row in page["LaunchTemplates"]:
            yield CloudResource(kind="launch template", id=row["LaunchTemplateId"], tags=tags_of(row.get("Tags")))


def _delete_template(clients: Clients, found: CloudResource) -> None:
    clients.ec2.delete_launch_template(LaunchTemplateId=found.id)


def _placement_groups(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    for row in clients.ec2.describe_placement_groups(Filters=[by_id(cluster_id)])["PlacementGroups"]:
        if row.get("State") != "deleted":
            yield CloudResource(
                kind="placement group",
                id=row["GroupName"],
                aliases=frozenset({row.get("GroupId", "")}),
                tags=tags_of(row.get("Tags")),
            )


def _delete_placement_group(clients: Clients, found: CloudResource) -> None:
    clients.ec2.delete_placement_group(GroupName=found.id)


def _key_pairs(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    for row in clients.ec2.describe_key_pairs(Filters=[by_id(cluster_id)])["KeyPairs"]:
        yield CloudResource(
            kind="key pair",
            id=row["KeyName"],
            aliases=frozenset({row["KeyPairId"]}),
            tags=tags_of(row.get("Tags")),
        )


def _delete_key_pair(clients: Clients, found: CloudResource) -> None:
    clients.ec2.delete_key_pair(KeyName=found.id)


MACHINE_KINDS = (
    ResourceType(
        name="instance",
        types=("aws:ec2/instance:Instance",),
        find=_instances,
        delete=_end_instance,
        bills="its hourly price",
    ),
    ResourceType(
        name=RESERVATION,
        types=("aws:ec2/capacityReservation:CapacityReservation",),
        find=reservations,
        delete=_cancel_reservation,
        bills="the hourly price of every instance it holds, empty or not",
    ),
    ResourceType(
        name="elastic IP", types=("aws:ec2/eip:Eip",), find=addresses, delete=_release_address, bills="$0.005 an hour"
    ),
    ResourceType(
        name="network interface",
        types=("aws:ec2/networkInterface:NetworkInterface",),
        find=_interfaces,
        delete=_delete_interface,
        bills=None,
        is_tagged_once=True,
    ),
    ResourceType(
        name="volume",
        types=("aws:ebs/volume:Volume",),
        find=_volumes,
        delete=_delete_volume,
        bills="its size a month",
        is_data=True,
    ),
    ResourceType(
        name="launch template",
        types=("aws:ec2/launchTemplate:LaunchTemplate",),
        find=_templates,
        delete=_delete_template,
        bills=None,
    ),
    ResourceType(
        name="placement group",
        types=("aws:ec2/placementGroup:PlacementGroup",),
        find=_placement_groups,
        delete=_delete_placement_group,
        bills=None,
    ),
    ResourceType(
        name="key pair", types=("aws:ec2/keyPair:KeyPair",), find=_key_pairs, delete=_delete_key_pair, bills=None
    ),
)
"""In the order in which they are ended."""
