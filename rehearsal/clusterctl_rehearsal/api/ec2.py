"""EC2: every call that the stand-in answers."""

from __future__ import annotations

from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api import ec2_compute_views as compute
from clusterctl_rehearsal.api.block_offerings import describe_block_offerings, purchase_block
from clusterctl_rehearsal.api.call import Call, Handler
from clusterctl_rehearsal.api.ec2_attributes import ATTRIBUTES, listed, shown_tags
from clusterctl_rehearsal.api.ec2_describe import DESCRIBE
from clusterctl_rehearsal.api.ec2_end import END
from clusterctl_rehearsal.api.ec2_make import MAKE
from clusterctl_rehearsal.api.ec2_modify import MODIFY
from clusterctl_rehearsal.api.filters import page
from clusterctl_rehearsal.api.interfaces import INTERFACES
from clusterctl_rehearsal.api.launch_templates import describe_versions
from clusterctl_rehearsal.api.spot_prices import describe_spot_prices
from clusterctl_rehearsal.api.spot_requests import SPOT_REQUESTS
from clusterctl_rehearsal.api.topology import describe_topology
from clusterctl_rehearsal.api.volumes import VOLUMES, volumes
from clusterctl_rehearsal.region.journal import IMAGE_DISK_GIB
from clusterctl_rehearsal.region.lookups import image_architecture, offerings
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.types.network import INSTANCE
from clusterctl_rehearsal.region.types.table import TYPES

View = dict[str, Any]
ENABLED_REGIONS = (
    *("ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1", "ap-southeast-1", "ap-southeast-2"),
    *("ca-central-1", "eu-central-1", "eu-north-1", "eu-west-1", "eu-west-2", "eu-west-3", "sa-east-1"),
    *("us-east-1", "us-east-2", "us-west-1", "us-west-2"),
)
"""The regions that every account has without asking (Account Management guide, "Enable or disable AWS Regions";
general knowledge, not read again)."""
ADDRESSES = "vpc-max-elastic-ips"
NO_LIMIT = 10_000


def _offerings(call: Call) -> dict[str, Any]:
    wanted = {row["Name"]: row["Values"] for row in call.parameters.get("Filters") or []}
    kind = call.parameters.get("LocationType") or "region"
    found = offerings(call.region_name, call.region.settings(), call.region.catalog, wanted, kind)
    rows = [{"InstanceType": name, "LocationType": kind, "Location": location} for name, location in found]
    shown, rest = page(rows, call.parameters)
    return {"InstanceTypeOfferings": shown, "NextToken": rest}


def _regions(call: Call) -> dict[str, Any]:
    rows = [
        {"RegionName": name, "Endpoint": f"ec2.{name}.amazonaws.com", "OptInStatus": "opt-in-not-required"}
        for name in ENABLED_REGIONS
    ]
    return {"Regions": rows}


def _tags(call: Call) -> list[View]:
    found = [(row.id, _tag_kind(row), row.tags) for row in call.region.store.live() if row.region == call.region_name]
    of_machines = [tagged for row in call.records(INSTANCE) for tagged in shown_tags(row)]
    return [
        {"ResourceId": id, "ResourceType": kind, "Key": key, "Value": value}
        for id, kind, tags in [*found, *of_machines]
        for key, value in tags.items()
    ]


def _tag_kind(row: Record) -> str:
    arn = str(row.outputs.get("arn") or "")
    return arn.rpartition(":")[2].partition("/")[0] if arn else TYPES[row.token].kind


def _account_attributes(call: Call) -> dict[str, Any]:
    """The answer to DescribeAccountAttributes, with the only attribute that has a quota here: elastic addresses."""
    limit = call.region.settings().quotas.get("addresses", NO_LIMIT)
    asked = call.parameters.get("AttributeNames") or [ADDRESSES]
    rows = [{"AttributeName": ADDRESSES, "AttributeValues": [{"AttributeValue": str(limit)}]}]
    return {"AccountAttributes": rows if ADDRESSES in asked else []}


def _images(call: Call) -> dict[str, Any]:
    """Every id asked for is an image: for arm64 if an arm64 parameter of the catalog leads to it, else for x86_64."""
    settings = call.region.settings()
    made = f"{settings.images_dated or '2026-11-01'}T00:00:00.000Z"
    rows = [
        {
            "ImageId": id,
            "State": "available",
            "Architecture": image_architecture(id, settings, call.region.catalog),
            "CreationDate": made,
            "RootDeviceName": "/dev/sda1",
            "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": IMAGE_DISK_GIB}}],
        }
        for id in call.parameters.get("ImageIds") or []
    ]
    return {"Images": rows}


EC2: dict[str, Handler] = {
    **DESCRIBE,
    **END,
    **MAKE,
    **ATTRIBUTES,
    **INTERFACES,
    **MODIFY,
    **SPOT_REQUESTS,
    **VOLUMES,
    "DescribeAccountAttributes": _account_attributes,
    "DescribeCapacityBlockOfferings": describe_block_offerings,
    "PurchaseCapacityBlock": purchase_block,
    "DescribeInstanceTypeOfferings": _offerings,
    "DescribeLaunchTemplateVersions": describe_versions,
    "DescribeNetworkInterfaces": listed(
        "NetworkInterfaces",
        "NetworkInterfaceIds",
        "NetworkInterfaceId",
        compute.network_interfaces,
        {
            "attachment.instance-id": "Attachment.InstanceId",
            "attachment.status": "Attachment.Status",
            "attachment.attachment-id": "Attachment.AttachmentId",
            "group-id": "Groups.GroupId",
        },
        "InvalidNetworkInterfaceID.NotFound",
    ),
    "DescribeVolumes": listed(
        "Volumes",
        "VolumeIds",
        "VolumeId",
        volumes,
        {"attachment.instance-id": "Attachments.InstanceId", "status": "State"},
        "InvalidVolume.NotFound",
    ),
    "DescribeImages": _images,
    "DescribeRegions": _regions,
    "DescribeInstanceTopology": describe_topology,
    "DescribeSpotPriceHistory": describe_spot_prices,
    "DescribeTags": listed("Tags", "", "", _tags, {}),
}
