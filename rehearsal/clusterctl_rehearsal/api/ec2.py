"""EC2: every call that the stand-in answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api import ec2_compute_views as compute
from clusterctl_rehearsal.api.block_offerings import describe_block_offerings, purchase_block
from clusterctl_rehearsal.api.call import Call, Handler
from clusterctl_rehearsal.api.ec2_describe import DESCRIBE, check_all_found
from clusterctl_rehearsal.api.ec2_end import END
from clusterctl_rehearsal.api.ec2_make import MAKE
from clusterctl_rehearsal.api.filters import matching, page
from clusterctl_rehearsal.api.launch_templates import describe_versions
from clusterctl_rehearsal.api.spot_prices import describe_spot_prices
from clusterctl_rehearsal.api.topology import describe_topology
from clusterctl_rehearsal.region.journal import IMAGE_DISK_GIB
from clusterctl_rehearsal.region.lookups import image_architecture, offerings
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.types.network import VPC
from clusterctl_rehearsal.region.types.table import TYPES

View = dict[str, Any]
ENABLED_REGIONS = (
    *("ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1", "ap-southeast-1", "ap-southeast-2"),
    *("ca-central-1", "eu-central-1", "eu-north-1", "eu-west-1", "eu-west-2", "eu-west-3", "sa-east-1"),
    *("us-east-1", "us-east-2", "us-west-1", "us-west-2"),
)
"""Those that every account has without asking for them (Account Management guide, "Enable or disable AWS Regions";
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


def _listed(key: str, ids: str, id_key: str, rows: Callable[[Call], Any], filters: Mapping[str, str]) -> Handler:
    def handler(call: Call) -> dict[str, Any]:
        wanted = call.parameters.get(ids) or []
        shown = [view for view in rows(call) if not wanted or view[id_key] in wanted]
        shown = matching(shown, call.parameters.get("Filters") or [], filters)
        found, rest = page(shown, call.parameters)
        return {key: found, "NextToken": rest}

    return handler


def _tags(call: Call) -> list[View]:
    return [
        {"ResourceId": row.id, "ResourceType": _tag_kind(row), "Key": key, "Value": value}
        for row in call.region.store.live()
        if row.region == call.region_name
        for key, value in row.tags.items()
    ]


def _tag_kind(row: Record) -> str:
    arn = str(row.outputs.get("arn") or "")
    return arn.rpartition(":")[2].partition("/")[0] if arn else TYPES[row.token].kind


def _account_attributes(call: Call) -> dict[str, Any]:
    """Of the attributes, the one that there is a quota for here."""
    limit = call.region.settings().quotas.get("addresses", NO_LIMIT)
    asked = call.parameters.get("AttributeNames") or [ADDRESSES]
    rows = [{"AttributeName": ADDRESSES, "AttributeValues": [{"AttributeValue": str(limit)}]}]
    return {"AccountAttributes": rows if ADDRESSES in asked else []}


def _vpc_attribute(call: Call) -> dict[str, Any]:
    """Of a VPC's attributes the two about names."""
    vpc_id, asked = call.parameters["VpcId"], call.parameters["Attribute"]
    found = next((row for row in call.records(VPC) if row.id == vpc_id and row.is_live), None)
    check_all_found(VPC, [vpc_id], set() if found is None else {vpc_id})
    assert found is not None  # else refused above
    value = bool(found.outputs.get(asked, found.inputs.get(asked, False)))
    return {"VpcId": vpc_id, asked[:1].upper() + asked[1:]: {"Value": value}}


def _images(call: Call) -> dict[str, Any]:
    """Every image is there; an id that a parameter named for arm64 is for that."""
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
    "DescribeAccountAttributes": _account_attributes,
    "DescribeCapacityBlockOfferings": describe_block_offerings,
    "PurchaseCapacityBlock": purchase_block,
    "DescribeInstanceTypeOfferings": _offerings,
    "DescribeLaunchTemplateVersions": describe_versions,
    "DescribeNetworkInterfaces": _listed(
        "NetworkInterfaces",
        "NetworkInterfaceIds",
        "NetworkInterfaceId",
        compute.network_interfaces,
        {
            "attachment.instance-id": "Attachment.InstanceId",
            "attachment.status": "Attachment.Status",
            "group-id": "Groups.GroupId",
        },
    ),
    "DescribeVolumes": _listed(
        "Volumes",
        "VolumeIds",
        "VolumeId",
        compute.volumes,
        {"attachment.instance-id": "Attachments.InstanceId", "status": "State"},
    ),
    "DescribeImages": _images,
    "DescribeRegions": _regions,
    "DescribeVpcAttribute": _vpc_attribute,
    "DescribeInstanceTopology": describe_topology,
    "DescribeSpotPriceHistory": describe_spot_prices,
    "DescribeTags": _listed("Tags", "", "", _tags, {}),
}
