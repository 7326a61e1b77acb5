"""Instances and what belongs to them as the EC2 API shows them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any  # views are JSON-like

from clusterctl_rehearsal.api.call import Call, tag_list
from clusterctl_rehearsal.region.capacity import reserved_by
from clusterctl_rehearsal.region.instances import instant, launched_at, transition_reason
from clusterctl_rehearsal.region.journal import root_disk_gib
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Record
from clusterctl_rehearsal.region.types.identity import INSTANCE_PROFILE
from clusterctl_rehearsal.region.types.network import INSTANCE, NAT_GATEWAY, NETWORK_INTERFACE

View = dict[str, Any]
STATE_CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}


def instance(call: Call, row: Record) -> View:
    """An instance as DescribeInstances shows it, even after its end."""
    facts, outputs = row.facts, call.region.instances.outputs(row)
    code, message = facts.get("reason") or ("", "")
    alive = row.is_live
    cards = facts["interfaces"] if alive else []
    return {
        "InstanceId": row.id,
        "ImageId": facts["image"],
        "InstanceType": facts["instance_type"],
        "Architecture": facts["architecture"],
        "State": state(row),
        "StateReason": {"Code": code, "Message": message} if code else None,
        "StateTransitionReason": transition_reason(row),
        "LaunchTime": launched_at(row),
        "KeyName": facts["key_name"],
        "Placement": {
            "AvailabilityZone": facts["zone"],
            "GroupName": facts["placement_group"] or "",
            "Tenancy": "default",
        },
        "PrivateIpAddress": outputs["privateIp"] if alive else None,
        "PrivateDnsName": outputs["privateDns"] if alive else "",
        "PublicIpAddress": outputs["publicIp"] or None if alive else None,
        "PublicDnsName": outputs["publicDns"] if alive else "",
        "SubnetId": outputs["subnetId"] if alive else None,
        "VpcId": facts["vpc"] if alive else None,
        "CapacityReservationId": facts["reservation"],
        **_launched_with(facts),
        "ClientToken": row.request.partition("#")[0],
        "InstanceLifecycle": facts["market"],
        "SpotInstanceRequestId": facts.get("spot_request"),
        "NetworkInterfaces": [_attached(row, card, outputs["publicIp"]) for card in cards],
        "SecurityGroups": [{"GroupId": group} for group in facts["interfaces"][0]["groups"]] if alive else [],
        "IamInstanceProfile": _profile(call, facts["profile"]),
        "RootDeviceName": "/dev/sda1",
        "RootDeviceType": "ebs",
        "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": _ebs(row)}] if alive else [],
        "AmiLaunchIndex": 0,
        "VirtualizationType": "hvm",
    }


def _launched_with(facts: View) -> View:
    """What the launch asked for about reservations and the metadata service."""
    return {
        "CapacityReservationSpecification": _reservation_wish(facts),
        "MetadataOptions": _metadata_options(facts["metadata_options"]),
    }


def _reservation_wish(facts: View) -> View:
    """The reservation that the launch asked for: the preference, or one reservation's id."""
    preference, reservation_id = facts.get("reservation_wish") or ("open", facts["reservation"])
    if reservation_id is None:
        return {"CapacityReservationPreference": preference}
    return {"CapacityReservationTarget": {"CapacityReservationId": reservation_id}}


def _metadata_options(options: View) -> View:
    """The options, with AWS's default for each not given (EC2 API, InstanceMetadataOptionsResponse; 2026-11-26)."""
    return {
        "State": "applied",
        "HttpTokens": options.get("httpTokens") or "optional",
        "HttpPutResponseHopLimit": int(options.get("httpPutResponseHopLimit") or 1),
        "HttpEndpoint": options.get("httpEndpoint") or "enabled",
        "HttpProtocolIpv6": options.get("httpProtocolIpv6") or "disabled",
        "InstanceMetadataTags": options.get("instanceMetadataTags") or "disabled",
    }


def state(row: Record) -> View:
    """The instance's state, as the API's InstanceState."""
    return {"Code": STATE_CODES[row.state], "Name": row.state}


def reservation(call: Call, row: Record, view: View) -> View:
    """The Reservation, in the sense of RunInstances, that holds the instance."""
    return {"ReservationId": "r-" + row.id.removeprefix("i-"), "OwnerId": ACCOUNT_ID, "Groups": [], "Instances": [view]}


def placement_group(call: Call, row: Record) -> View:
    return {
        "GroupName": row.id,
        "GroupId": row.outputs["placementGroupId"],
        "GroupArn": row.outputs["arn"],
        "Strategy": row.inputs["strategy"],
        "State": "available",
    }


def capacity_reservation(call: Call, row: Record) -> View:
    total = int(row.inputs["instanceCount"])
    is_early = row.state == "scheduled"  # no place is free yet (EC2 User Guide, "View Capacity Blocks"; 2026-11-26)
    return {
        "CapacityReservationId": row.id,
        "CapacityReservationArn": row.outputs["arn"],
        "InstanceType": row.inputs["instanceType"],
        "InstancePlatform": row.inputs["instancePlatform"],
        "InstanceMatchCriteria": row.inputs["instanceMatchCriteria"],
        "AvailabilityZone": row.inputs["availabilityZone"],
        "TotalInstanceCount": total,
        "AvailableInstanceCount": 0 if is_early else max(0, total - reserved_by(call.region.store, row.id)),
        "EndDate": row.inputs.get("endDate"),
        "EndDateType": row.inputs["endDateType"],
        "PlacementGroupArn": row.inputs.get("placementGroupArn"),
        "State": row.facts.get("state", "active"),
        "ReservationType": "capacity-block" if row.facts.get("is_block") else "default",
        "StartDate": instant(row.facts.get("starts_at", row.created_at)),
        "CreateDate": launched_at(row),
        "Tenancy": "default",
    }


def utc_text(value: object) -> str:
    """An instant in a request as text in UTC, which is how the region keeps it."""
    at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def launch_template(call: Call, row: Record) -> View:
    return {
        "LaunchTemplateId": row.id,
        "LaunchTemplateName": row.inputs["name"],
        "CreateTime": launched_at(row),
        "DefaultVersionNumber": row.outputs["defaultVersion"],
        "LatestVersionNumber": row.outputs["latestVersion"],
    }


def loose_interface(row: Record) -> View:
    """An interface that no machine has."""
    view = {**card_view(row.facts["card"], "available"), "VpcId": row.facts["vpc"], "Attachment": None}
    return {**view, "TagSet": tag_list(row.tags)}


def network_interfaces(call: Call) -> Iterator[View]:
    """Every interface: those of living instances, those attached to nothing, and those of NAT gateways."""
    for row in call.records(INSTANCE):
        if row.is_live:
            for card in row.facts["interfaces"]:
                attached = {**_attached(row, card, ""), "VpcId": row.facts["vpc"]}
                attached["Attachment"] = {**attached["Attachment"], "InstanceId": row.id}
                yield attached
    for row in call.records(NETWORK_INTERFACE):
        yield loose_interface(row)
    for row in call.records(NAT_GATEWAY):
        yield {
            "NetworkInterfaceId": row.outputs["networkInterfaceId"],
            "InterfaceType": "nat_gateway",
            "Status": "in-use",
            "SubnetId": row.inputs["subnetId"],
            "Description": f"Interface for NAT Gateway {row.id}",
            "VpcId": None,
            "Attachment": None,
            "Groups": [],
            "TagSet": [],
        }


def volumes(call: Call) -> Iterator[View]:
    """The root disk of every living instance; it is deleted with the instance."""
    for row in call.records(INSTANCE):
        if row.is_live:
            ebs = _ebs(row)
            attachment = {"VolumeId": ebs["VolumeId"], "InstanceId": row.id, "State": "attached", "Device": "/dev/sda1"}
            yield {
                "VolumeId": ebs["VolumeId"],
                "AvailabilityZone": row.facts["zone"],
                "State": "in-use",
                "Size": root_disk_gib(row),
                "VolumeType": "gp3",
                "CreateTime": launched_at(row),
                "Attachments": [{**attachment, "DeleteOnTermination": True}],
                "Tags": tag_list(row.facts["resource_tags"].get("volume", {})),
            }


def _attached(row: Record, card: dict[str, Any], public_ip: str) -> View:
    view = card_view(card, "in-use")
    view["TagSet"] = tag_list({**row.facts["resource_tags"].get("network-interface", {}), **(card.get("tags") or {})})
    view["Attachment"] = {
        "AttachmentId": attachment_id(card),
        "DeviceIndex": card["device"],
        "NetworkCardIndex": card["card"],
        "DeleteOnTermination": card["delete"],
        "Status": "attached",
    }
    if public_ip and (card["card"], card["device"]) == (0, 0):
        view["Association"] = {"PublicIp": public_ip, "IpOwnerId": ACCOUNT_ID}
    return view


def attachment_id(card: dict[str, Any]) -> str:
    """The id of an interface's attachment to its machine."""
    return str(card["id"]).replace("eni-", "eni-attach-")


def card_view(card: dict[str, Any], status: str) -> View:
    """An interface without its attachment."""
    return {
        "NetworkInterfaceId": card["id"],
        "InterfaceType": card["kind"],
        "MacAddress": card["mac"],
        "OwnerId": ACCOUNT_ID,
        "PrivateIpAddress": card["ip"],  # an efa-only interface has none
        "PrivateIpAddresses": [{"Primary": True, "PrivateIpAddress": card["ip"]}] if card["ip"] else [],
        "Description": card.get("description") or "",
        "SourceDestCheck": card.get("source_dest_check", True),
        "Status": status,
        "SubnetId": card["subnet"],
        "Groups": [{"GroupId": group} for group in card["groups"]],
        "TagSet": [],
    }


def _ebs(row: Record) -> View:
    return {
        "VolumeId": "vol-" + row.id.removeprefix("i-"),
        "Status": "attached",
        "AttachTime": launched_at(row),
        "DeleteOnTermination": True,
    }


def _profile(call: Call, name: str | None) -> View | None:
    for row in call.region.store.live(INSTANCE_PROFILE) if name else ():
        if name in (row.id, row.outputs["arn"]):
            return {"Arn": row.outputs["arn"], "Id": row.outputs["uniqueId"]}
    return None
