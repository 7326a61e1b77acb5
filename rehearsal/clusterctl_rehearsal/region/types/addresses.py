"""Elastic addresses and what they are associated with."""

from __future__ import annotations

import random

from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import Properties, Record
from clusterctl_rehearsal.region.store import Store
from clusterctl_rehearsal.region.types.network import EIP, INSTANCE, NAT_GATEWAY, NETWORK_INTERFACE
from clusterctl_rehearsal.region.types.row import Request, ResourceType, random_hex

EIP_ASSOCIATION = "aws:ec2/eipAssociation:EipAssociation"
TARGETS = ("instance", "networkInterface", "associateWithPrivateIp")


def unused_public_address(store: Store) -> str:
    """An address of 198.18.0.0/15 (RFC 2544: never on the internet) that nobody here has."""
    taken = {row.outputs.get("publicIp") for row in store.live()}
    while True:
        address = f"198.{random.randrange(18, 20)}.{random.randrange(256)}.{random.randrange(1, 255)}"
        if address not in taken:
            return address


def _check_eip(request: Request) -> None:
    limit = request.settings.quotas.get("addresses")
    used = sum(row.region == request.region for row in request.store.live(EIP))
    if request.old is None and limit is not None and used >= limit:
        raise AwsError("AddressLimitExceeded", "The maximum number of addresses has been reached.")
    # The provider asks AWS to associate an address only if its target changed (terraform-provider-aws, ec2_eip.go,
    # resourceEIPUpdate; 2026-11-22): the tags of an address can be changed even when its target is gone.
    if request.old is None or any(request.inputs.get(key) != request.old.inputs.get(key) for key in TARGETS):
        _check_target(request, request.inputs.get("instance"), request.inputs.get("networkInterface"))


def _check_association(request: Request) -> None:
    _check_target(request, request.inputs.get("instanceId"), request.inputs.get("networkInterfaceId"))
    allocation_id = str(request.inputs.get("allocationId"))
    holder = association_of(request.store, allocation_id)
    if holder is not None and request.inputs.get("allowReassociation") is False:
        raise AwsError("Resource.AlreadyAssociated", f"resource {allocation_id} is already associated with {holder[0]}")


def _check_target(request: Request, instance_id: str | None, interface_id: str | None) -> None:
    instance = request.store.get(INSTANCE, instance_id) if instance_id else None
    if instance_id and (instance is None or not instance.is_live):
        raise AwsError("InvalidInstanceID.NotFound", f"The instance ID '{instance_id}' does not exist")
    with_address = [card for card in (instance.facts["interfaces"] if instance else []) if card["kind"] != "efa-only"]
    if len(with_address) > 1:
        raise AwsError(
            "InvalidInstanceID",
            f"There are multiple interfaces attached to instance '{instance_id}'. "
            "Please specify an interface ID for the operation instead.",
        )
    if interface_id and interface_owner(request.store, interface_id) is None:
        raise AwsError("InvalidNetworkInterfaceID.NotFound", f"The networkInterface ID '{interface_id}' does not exist")


def interface_owner(store: Store, interface_id: str) -> str | None:
    """The id of the live instance that has the interface; None if none has."""
    for row in store.live(INSTANCE):
        if any(card["id"] == interface_id for card in row.facts["interfaces"]):
            return row.id
    return None


def association_of(store: Store, allocation_id: str) -> tuple[str, str] | None:
    """(instance or gateway id, association id) of what has the address; None if nothing has."""
    for row in store.live(EIP_ASSOCIATION):
        if row.inputs.get("allocationId") == allocation_id:
            holder = row.inputs.get("instanceId") or interface_owner(store, row.inputs.get("networkInterfaceId") or "")
            if holder is not None and _is_alive(store, holder):
                return holder, row.id
    for row in store.live(NAT_GATEWAY):
        if row.inputs.get("allocationId") == allocation_id:
            return row.id, row.outputs["associationId"]
    address = store.get(EIP, allocation_id)
    if address is None:
        return None
    holder = address.inputs.get("instance") or interface_owner(store, address.inputs.get("networkInterface") or "")
    return (holder, address.outputs.get("associationId", "")) if holder and _is_alive(store, holder) else None


def elastic_address_of(store: Store, instance: Record) -> str | None:
    """The elastic address of an instance; None if it has none."""
    targets = {instance.id, *(card["id"] for card in instance.facts["interfaces"])}
    for row in store.live(EIP_ASSOCIATION):
        if targets & {row.inputs.get("instanceId"), row.inputs.get("networkInterfaceId")}:
            return str(row.outputs["publicIp"])
    for row in store.live(EIP):
        if targets & {row.inputs.get("instance"), row.inputs.get("networkInterface")}:
            return str(row.outputs["publicIp"])
    return None


def _is_alive(store: Store, instance_id: str) -> bool:
    row = store.get(INSTANCE, instance_id)
    return row is not None and row.is_live


def _eip(request: Request) -> Properties:
    address = unused_public_address(request.store)
    return {
        "arn": request.arn("elastic-ip"),
        "allocationId": request.id,
        "associationId": f"eipassoc-{random_hex(17)}" if _has_target(request) else "",
        "domain": "vpc",
        "publicIp": address,
        "publicDns": f"ec2-{address.replace('.', '-')}.{request.region}.compute.amazonaws.com",
        "publicIpv4Pool": "amazon",
        "networkBorderGroup": request.region,
    }


def _has_target(request: Request) -> bool:
    return bool(request.inputs.get("instance") or request.inputs.get("networkInterface"))


def _association(request: Request) -> Properties:
    address = request.store.get(EIP, request.inputs["allocationId"])
    assert address is not None  # refused before, as `needs` names it
    return {"publicIp": address.outputs["publicIp"]}


ADDRESS_TYPES = (
    ResourceType(
        token=EIP,
        label="EC2 EIP",
        prefix="eipalloc",
        create="AllocateAddress",
        delete="ReleaseAddress",
        not_found="InvalidAllocationID.NotFound",
        source="internal/service/ec2/ec2_eip.go",
        replace=("address", "domain", "ipamPoolId", "networkBorderGroup", "publicIpv4Pool"),
        blocked_by=(NAT_GATEWAY, EIP_ASSOCIATION),
        blocked=("InvalidIPAddress.InUse", "The address with allocation id [{id}] is in use."),
        check=_check_eip,
        outputs=_eip,
    ),
    ResourceType(
        token=EIP_ASSOCIATION,
        label="EC2 EIP Association",
        prefix="eipassoc",
        create="AssociateAddress",
        delete="DisassociateAddress",
        not_found="InvalidAssociationID.NotFound",
        source="internal/service/ec2/ec2_eip_association.go",
        replace=(
            "allocationId",
            "allowReassociation",
            "instanceId",
            "networkInterfaceId",
            "privateIpAddress",
            "publicIp",
        ),
        needs={"allocationId": EIP},
        taggable=False,
        check=_check_association,
        outputs=_association,
    ),
    ResourceType(
        token=NETWORK_INTERFACE,
        label="EC2 Network Interface",
        prefix="eni",
        create="",  # not made by the engine, but by API calls, rehearsal.yaml and ended instances
        delete="DeleteNetworkInterface",
        not_found="InvalidNetworkInterfaceID.NotFound",
        source="internal/service/ec2/vpc_network_interface.go",
    ),
)
