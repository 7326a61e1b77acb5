"""Launch templates, and instances as far as they are data."""

from __future__ import annotations

import ipaddress
import re

from clusterctl_infra.catalog.instance import InstanceType

from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.launch import LAUNCH_TEMPLATE, Launch, LaunchInterface, decode_user_data
from clusterctl_rehearsal.region.record import Properties
from clusterctl_rehearsal.region.types.network import INSTANCE
from clusterctl_rehearsal.region.types.row import Request, ResourceType

USER_DATA_LIMIT_BYTES = 16384
"""Raw, before base64 (EC2 user guide, "Run commands when you launch an EC2 instance with user data input")."""
NOT_A_NEW_VERSION = ("tags", "tagsAll", "defaultVersion", "updateDefaultVersion", "name", "namePrefix", "region")


def _check_template(request: Request) -> None:
    name = request.inputs.get("name") or ""
    if not re.fullmatch(r"[A-Za-z0-9().\-/_]{3,128}", name):
        raise AwsError(
            "InvalidLaunchTemplateName.MalformedException", f"A launch template name must be 3-128 letters: {name}"
        )
    decode_user_data(request.inputs.get("userData") or "")
    for row in request.inputs.get("networkInterfaces") or []:
        if row.get("interfaceType") not in (None, "", "interface", "efa", "efa-only"):
            raise AwsError("InvalidParameterValue", f"Invalid value '{row['interfaceType']}' for InterfaceType.")


def check_launch(launch: Launch, kind: InstanceType | None) -> None:
    """Raises AWS's refusals of what a request says, before anything is looked up."""
    if launch.instance_type is None or kind is None:
        raise AwsError("InvalidParameterValue", f"Invalid value '{launch.instance_type}' for InstanceType.")
    if launch.image_id is None:
        raise AwsError("MissingParameter", "The request must contain the parameter ImageId")
    if not re.fullmatch(r"ami-([0-9a-f]{8}|[0-9a-f]{17})|resolve:ssm:.+", launch.image_id):
        raise AwsError("InvalidAMIID.Malformed", f'Invalid id: "{launch.image_id}"')
    if len(launch.user_data) > USER_DATA_LIMIT_BYTES:
        raise AwsError("InvalidParameterValue", "User data is limited to 16384 bytes")
    _check_layout(launch.interfaces, kind)


def _check_layout(interfaces: tuple[LaunchInterface, ...], kind: InstanceType) -> None:
    places = [(row.card, row.device) for row in interfaces]
    if len(set(places)) != len(places):
        raise AwsError(
            "InvalidParameterValue", "Each network interface must have its own network card and device index."
        )
    if (0, 0) not in places:
        raise AwsError("InvalidParameterCombination", "A primary network interface (card 0, device 0) is required.")
    if len(interfaces) > 1 and any(row.associate_public_ip for row in interfaces):
        raise AwsError(
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter cannot be specified when launching with "
            "multiple network interfaces.",
        )
    for card in {row.card for row in interfaces}:
        count = sum(row.card == card for row in interfaces)
        if card >= kind.network_cards:
            raise AwsError("InvalidParameterValue", f"Invalid network card index '{card}' for {kind.name}.")
        if count > kind.max_interfaces_per_card:
            raise AwsError("AttachmentLimitExceeded", f"Interface count {count} exceeds the limit for {kind.name}")
    _check_efa(interfaces, kind)


def _check_efa(interfaces: tuple[LaunchInterface, ...], kind: InstanceType) -> None:
    efa = [row for row in interfaces if row.kind != "interface"]
    if efa and not kind.has_efa:
        raise AwsError("InvalidParameterCombination", f"EFA interfaces are not supported on {kind.name}")
    if len(efa) > kind.max_efa_interfaces:
        raise AwsError("AttachmentLimitExceeded", f"EFA interface count {len(efa)} exceeds the limit for {kind.name}")
    for row in efa:
        if (row.card, row.device) == (0, 0) and row.kind == "efa-only":
            raise AwsError("InvalidParameterCombination", "An EFA-only network interface cannot be the primary one.")
        if row.card == 0 and kind.max_efa_interfaces != kind.network_cards:
            raise AwsError("InvalidParameterCombination", f"Network card 0 of {kind.name} does not support EFA")
        if row.kind == "efa-only" and (row.private_ip or row.associate_public_ip):
            raise AwsError("InvalidParameterCombination", "An EFA-only network interface has no IP address.")
    if any(sum(row.card == card for row in efa) > 1 for card in {row.card for row in efa}):
        raise AwsError("InvalidParameterCombination", "Only one EFA interface is supported per network card.")


def _new_template(request: Request) -> Properties:
    return {"arn": request.arn("launch-template"), "latestVersion": 1, "defaultVersion": 1}


def mac_address(ip: str) -> str:
    """The MAC address, a locally administered one, that belongs to a private IP address."""
    return "02:00:" + ":".join(f"{octet:02x}" for octet in ipaddress.IPv4Address(ip).packed)


LAUNCH_TYPES = (
    ResourceType(
        token=LAUNCH_TEMPLATE,
        label="EC2 Launch Template",
        prefix="lt",
        create="CreateLaunchTemplate",
        delete="DeleteLaunchTemplate",
        not_found="InvalidLaunchTemplateId.NotFound",
        source="internal/service/ec2/ec2_launch_template.go",
        replace=("name", "namePrefix"),
        name="name",
        unique=(
            ("name",),
            "InvalidLaunchTemplateName.AlreadyExistsException",
            "Launch template name already in use.",
        ),
        check=_check_template,
        outputs=_new_template,
        computed_on_change=("latestVersion",),
    ),
    ResourceType(
        token=INSTANCE,
        label="EC2 Instance",
        prefix="i",
        create="RunInstances",
        delete="TerminateInstances",
        not_found="InvalidInstanceID.NotFound",
        source="internal/service/ec2/ec2_instance.go",
        replace=(
            "ami",
            "associatePublicIpAddress",
            "availabilityZone",
            "cpuOptions",
            "ebsBlockDevices",
            "ebsOptimized",
            "enclaveOptions",
            "ephemeralBlockDevices",
            "hibernation",
            "hostId",
            "instanceMarketOptions",
            "ipv6AddressCount",
            "ipv6Addresses",
            "keyName",
            "launchTemplate.id",
            "launchTemplate.name",
            "launchTemplate.version",
            "networkInterfaces",
            "placementGroup",
            "placementGroupId",
            "placementPartitionNumber",
            "primaryNetworkInterface",
            "privateDnsNameOptions",
            "privateIp",
            "securityGroups",
            "subnetId",
            "tenancy",
        ),
        defaults={"getPasswordData": False, "sourceDestCheck": True, "userDataReplaceOnChange": False},
        # checks and outputs: region/placement.py; its life and its machine: region/instances.py
    ),
)
