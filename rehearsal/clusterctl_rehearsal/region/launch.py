"""What a RunInstances request launches: the launch template's version and the request's own values, combined."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any  # property values are whatever JSON can say

from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import Properties, Record
from clusterctl_rehearsal.region.spot import SpotRequest, spot_request
from clusterctl_rehearsal.region.store import Store

LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
_INTERFACES_OR_INSTANCE = "Network interfaces and an instance-level {what} may not be specified on the same request"


@dataclass(frozen=True, kw_only=True)
class LaunchInterface:
    """One network interface as asked for."""

    card: int
    device: int
    kind: str
    subnet_id: str | None
    groups: tuple[str, ...]
    private_ip: str | None
    associate_public_ip: bool | None
    delete_on_termination: bool


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Everything that one instance is started with."""

    image_id: str | None
    instance_type: str | None
    key_name: str | None
    user_data: bytes
    interfaces: tuple[LaunchInterface, ...]
    zone: str | None
    placement_group: str | None
    """Name or `pg-` id."""
    reservation_id: str | None
    reservation_preference: str
    instance_profile: str | None
    shutdown_behavior: str
    metadata_options: Mapping[str, Any]
    market: str | None
    spot: SpotRequest | None
    """The spot options of the request; None: on demand."""
    tags: Mapping[str, str]
    """Of the instance."""
    resource_tags: Mapping[str, Mapping[str, str]]
    """Kind (`volume`, `network-interface`) → tags of what is made with it."""
    template_id: str | None
    template_version: str | None


def resolve(inputs: Properties, store: Store) -> Launch:
    """The launch that an Instance's inputs ask for. Raises AWS's refusals of what cannot go together."""
    template, version = _template(inputs.get("launchTemplate"), store)
    base = {} if template is None else template.facts["versions"][version]
    placement = base.get("placement") or {}
    reservation = inputs.get("capacityReservationSpecification") or base.get("capacityReservationSpecification") or {}
    profile = base.get("iamInstanceProfile") or {}
    market = inputs.get("instanceMarketOptions") or base.get("instanceMarketOptions") or {}
    kinds = {row["resourceType"]: dict(row.get("tags") or {}) for row in base.get("tagSpecifications") or []}
    return Launch(
        image_id=inputs.get("ami") or base.get("imageId"),
        instance_type=inputs.get("instanceType") or base.get("instanceType"),
        key_name=inputs.get("keyName") or base.get("keyName"),
        user_data=_user_data(inputs, base),
        interfaces=_interfaces(inputs, base),
        zone=inputs.get("availabilityZone") or placement.get("availabilityZone"),
        placement_group=inputs.get("placementGroup")
        or inputs.get("placementGroupId")
        or placement.get("groupName")
        or placement.get("groupId"),
        reservation_id=(reservation.get("capacityReservationTarget") or {}).get("capacityReservationId"),
        reservation_preference=reservation.get("capacityReservationPreference") or "open",
        instance_profile=inputs.get("iamInstanceProfile") or profile.get("name") or profile.get("arn"),
        shutdown_behavior=inputs.get("instanceInitiatedShutdownBehavior")
        or base.get("instanceInitiatedShutdownBehavior")
        or "stop",
        metadata_options=inputs.get("metadataOptions") or base.get("metadataOptions") or {},
        market=market.get("marketType"),
        spot=spot_request(market),
        tags={**kinds.get("instance", {}), **(inputs.get("tags") or {})},
        resource_tags={kind: tags for kind, tags in kinds.items() if kind != "instance"},
        template_id=None if template is None else template.id,
        template_version=version if template is not None else None,
    )


def template_version(template: Record, version: str | None) -> str:
    """The version number that `$Latest`, `$Default`, a number or nothing stands for."""
    if version in (None, "", "$Default"):
        return str(template.outputs["defaultVersion"])
    if version == "$Latest":
        return str(template.outputs["latestVersion"])
    return str(version)


def decode_user_data(text: str) -> bytes:
    """The bytes of base64 user-data. Raises InvalidUserData.Malformed."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as e:
        raise AwsError("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.") from e


def _template(wanted: Properties | None, store: Store) -> tuple[Record | None, str]:
    if not wanted:
        return None, ""
    name = wanted.get("name")
    rows = list(store.live(LAUNCH_TEMPLATE))
    found = next((row for row in rows if row.id == wanted.get("id") or (name and row.inputs.get("name") == name)), None)
    if found is None:
        raise AwsError(
            "InvalidLaunchTemplateId.NotFound",
            f"The specified launch template, with template ID {wanted.get('id') or name}, does not exist.",
        )
    version = template_version(found, wanted.get("version"))
    if version not in found.facts["versions"]:
        raise AwsError(
            "InvalidLaunchTemplateId.VersionNotFound",
            f"Could not find the specified version {version} for the launch template with ID {found.id}.",
        )
    return found, version


def _user_data(inputs: Properties, base: Properties) -> bytes:
    if inputs.get("userDataBase64"):
        return decode_user_data(inputs["userDataBase64"])
    if inputs.get("userData"):
        return str(inputs["userData"]).encode()
    return decode_user_data(base.get("userData") or "")


def _interfaces(inputs: Properties, base: Properties) -> tuple[LaunchInterface, ...]:
    rows = base.get("networkInterfaces") or []
    if rows:
        for key, what in (
            ("subnetId", "subnet ID"),
            ("vpcSecurityGroupIds", "security groups"),
            ("privateIp", "private address"),
        ):
            if inputs.get(key):
                raise AwsError("InvalidParameterCombination", _INTERFACES_OR_INSTANCE.format(what=what))
        if base.get("vpcSecurityGroupIds"):
            raise AwsError("InvalidParameterCombination", _INTERFACES_OR_INSTANCE.format(what="security groups"))
        return tuple(_interface(row) for row in rows)
    groups = inputs.get("vpcSecurityGroupIds") or base.get("vpcSecurityGroupIds") or []
    return (
        LaunchInterface(
            card=0,
            device=0,
            kind="interface",
            subnet_id=inputs.get("subnetId"),
            groups=tuple(groups),
            private_ip=inputs.get("privateIp"),
            associate_public_ip=inputs.get("associatePublicIpAddress"),
            delete_on_termination=True,
        ),
    )


def _interface(row: Properties) -> LaunchInterface:
    card, device = int(row.get("networkCardIndex") or 0), int(row.get("deviceIndex") or 0)
    public, delete = row.get("associatePublicIpAddress"), row.get("deleteOnTermination")
    return LaunchInterface(
        card=card,
        device=device,
        kind=row.get("interfaceType") or "interface",
        subnet_id=row.get("subnetId"),
        groups=tuple(row.get("securityGroups") or ()),
        private_ip=row.get("privateIpAddress"),
        associate_public_ip=None if public in (None, "") else str(public).lower() == "true",
        # AWS keeps secondary interfaces unless told otherwise: 32 would stay behind for each p5 node.
        delete_on_termination=(card, device) == (0, 0) if delete in (None, "") else str(delete).lower() == "true",
    )
