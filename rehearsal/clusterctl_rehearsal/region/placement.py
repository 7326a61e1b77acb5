"""Where a new instance goes: its addresses, its place in a reservation, its machine's name; or AWS's refusal."""

from __future__ import annotations

import base64
import dataclasses

from clusterctl_infra.catalog.instance import InstanceType
from clusterctl_infra.names import NAME_TAG, SLOT_TAG

from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.capacity import check_room, check_vcpus, fitting_reservation, shortage
from clusterctl_rehearsal.region.existing import is_existing
from clusterctl_rehearsal.region.launch import Launch, resolve
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Properties, Record
from clusterctl_rehearsal.region.spot import (
    NO_SPOT_CAPACITY,
    SpotRequest,
    check_options,
    check_price,
    check_quota,
    market_outputs,
    new_request_id,
)
from clusterctl_rehearsal.region.store import Store
from clusterctl_rehearsal.region.subnets import check_address, free_address
from clusterctl_rehearsal.region.types.addresses import unused_public_address
from clusterctl_rehearsal.region.types.capacity import PLACEMENT_GROUP
from clusterctl_rehearsal.region.types.identity import INSTANCE_PROFILE
from clusterctl_rehearsal.region.types.launch import check_launch, mac_address
from clusterctl_rehearsal.region.types.network import INSTANCE, SECURITY_GROUP, SUBNET, VPC
from clusterctl_rehearsal.region.types.row import Request, random_hex
from clusterctl_rehearsal.region.types.security import KEY_PAIR


def place(request: Request, *, token: str, machines: str) -> Record:
    """The pending instance. `token`: the client token; `machines`: the driver asked for. Raises AwsError."""
    launch = resolve(request.inputs, request.store)
    kind = request.catalog.instance_type(launch.instance_type or "")
    check_launch(launch, kind)
    assert kind is not None  # check_launch refuses such a type
    _check_names(request, launch)
    cards = _cards(request, launch)
    subnet = request.store.get(SUBNET, cards[0]["subnet"])
    assert subnet is not None  # _cards refuses such a subnet
    group = _placement_group(request, launch)
    reservation = _reservation(request, launch, kind, str(subnet.outputs["availabilityZone"]), group)
    facts = {
        **_described(launch),
        **_named(request, launch, str(subnet.inputs["vpcId"])),
        "state": "pending",
        "interfaces": cards,
        "architecture": kind.architecture,
        "zone": subnet.outputs["availabilityZone"],
        "vpc": subnet.inputs["vpcId"],
        "reservation": None if reservation is None else reservation.id,
        "placement_group": None if group is None else group.id,
        "public_ip": _automatic_address(request, launch, subnet),
        "machines": machines,
    }
    refs = [subnet.id, *(id for card in cards for id in card["groups"])]
    refs += [found.id for found in (group, reservation) if found is not None]
    record = Record(
        id=request.id,
        token=INSTANCE,
        region=request.region,
        inputs=request.inputs,
        outputs={},
        refs=tuple(dict.fromkeys(refs)),
        facts=facts,
        created_at=request.now,
        request=token,
    )
    return _with_outputs(record, launch)


def instance_outputs(record: Record, tags: dict[str, str]) -> Properties:
    """What the provider shows of an instance; its state and public address are added later."""
    facts, primary = record.facts, record.facts["interfaces"][0]
    dashed = str(primary["ip"]).replace(".", "-")
    return {
        "ami": facts["image"],
        "instanceType": facts["instance_type"],
        "keyName": facts["key_name"],
        "iamInstanceProfile": facts["profile"],
        "instanceInitiatedShutdownBehavior": facts["shutdown"],
        "tenancy": "default",
        **record.inputs,
        "tagsAll": tags,
        "arn": f"arn:aws:ec2:{record.region}:{ACCOUNT_ID}:instance/{record.id}",
        "region": record.region,
        "availabilityZone": facts["zone"],
        "subnetId": primary["subnet"],
        "vpcSecurityGroupIds": primary["groups"],
        "privateIp": primary["ip"],
        "privateDns": f"ip-{dashed}.{record.region}.compute.internal",
        "primaryNetworkInterfaceId": primary["id"],
        "placementGroup": facts["placement_group"],
        "launchTemplate": None
        if facts["template"][0] is None
        else {**record.inputs["launchTemplate"], "id": facts["template"][0]},
    }


def _described(launch: Launch) -> Properties:
    return {
        "instance_type": launch.instance_type,
        "image": launch.image_id,
        "template": [launch.template_id, launch.template_version],
        "user_data": base64.b64encode(launch.user_data).decode(),
        "shutdown": launch.shutdown_behavior,
        "key_name": launch.key_name,
        "profile": launch.instance_profile,
        "market": launch.market,
        "resource_tags": {kind: dict(tags) for kind, tags in launch.resource_tags.items()},
        "metadata_options": dict(launch.metadata_options),
        "reservation_wish": [launch.reservation_preference, launch.reservation_id],
    }


def _check_names(request: Request, launch: Launch) -> None:
    store, profile = request.store, launch.instance_profile
    if launch.key_name and store.get(KEY_PAIR, launch.key_name) is None:
        raise AwsError("InvalidKeyPair.NotFound", f"The key pair '{launch.key_name}' does not exist")
    if profile and not any(profile in (row.id, row.outputs["arn"]) for row in store.live(INSTANCE_PROFILE)):
        raise AwsError(
            "InvalidParameterValue",
            f"Value ({profile}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
        )
    for group in {id for row in launch.interfaces for id in row.groups}:
        if store.get(SECURITY_GROUP, group) is None:
            raise AwsError("InvalidGroup.NotFound", f"The security group '{group}' does not exist")


def _cards(request: Request, launch: Launch) -> list[Properties]:
    cards: list[Properties] = []
    for row in sorted(launch.interfaces, key=lambda row: (row.card, row.device)):
        subnet = request.store.get(SUBNET, row.subnet_id or "")
        if row.subnet_id is None:
            raise AwsError("MissingInput", "No subnets found for the default VPC. Please specify a subnet.")
        if subnet is None:
            raise AwsError("InvalidSubnetID.NotFound", f"The subnet ID '{row.subnet_id}' does not exist")
        ip = None
        if row.kind != "efa-only":
            ip = check_address(request.store, subnet, row.private_ip) if row.private_ip else None
            ip = ip or free_address(request.store, subnet, besides={card["ip"] for card in cards})
        cards.append(
            {
                "id": f"eni-{random_hex(17)}",
                "card": row.card,
                "device": row.device,
                "kind": row.kind,
                "subnet": subnet.id,
                "ip": ip,
                "mac": mac_address(ip) if ip else f"02:01:{row.card:02x}:{row.device:02x}:00:00",
                "groups": list(row.groups),
                "delete": row.delete_on_termination,
            }
        )
    return cards


def _placement_group(request: Request, launch: Launch) -> Record | None:
    wanted = launch.placement_group
    if wanted is None:
        return None
    for row in request.store.live(PLACEMENT_GROUP):
        if wanted in (row.id, row.outputs["placementGroupId"]):
            return row
    raise AwsError("InvalidPlacementGroup.Unknown", f"The placement group '{wanted}' is unknown.")


def _reservation(
    request: Request, launch: Launch, kind: InstanceType, zone: str, group: Record | None
) -> Record | None:
    if launch.zone not in (None, zone):
        raise AwsError(
            "InvalidParameterValue", f"The subnet is in {zone}; the requested Availability Zone is {launch.zone}."
        )
    if launch.spot is not None:  # reserved places are not for spot machines
        _check_spot(request, launch, launch.spot, kind, zone=zone)
        return None
    found = fitting_reservation(
        request.store,
        {
            "reservation": launch.reservation_id,
            "preference": launch.reservation_preference,
            "instance_type": kind.name,
            "zone": zone,
            "placement_group": None if group is None else str(group.outputs["arn"]),
            "market": launch.market,
        },
    )
    if found is None:
        check_vcpus(request.store, request.settings, request.catalog, request.region, more=kind.vcpus)
        sentence = shortage(kind.name, zone, request.zone_names())
        check_room(request.store, request.settings, request.region, kind.name, zone=zone, more=1, message=sentence)
    return found


def _check_spot(request: Request, launch: Launch, spot: SpotRequest, kind: InstanceType, *, zone: str) -> None:
    targeted = launch.reservation_id is not None or launch.reservation_preference == "capacity-reservations-only"
    check_options(spot, is_targeted=targeted)
    check_price(spot, request.catalog.spot_price_usd_per_hour(kind.name, request.region))
    check_quota(request.store, request.settings, request.catalog, request.region, more=kind.vcpus)
    check_room(request.store, request.settings, request.region, kind.name, zone=zone, more=1, message=NO_SPOT_CAPACITY)


def _with_outputs(record: Record, launch: Launch) -> Record:
    outputs = instance_outputs(record, dict(launch.tags))
    if launch.spot is None:
        return dataclasses.replace(record, outputs=outputs)
    asked = record.changed(spot_request=new_request_id())
    return dataclasses.replace(asked, outputs={**outputs, **market_outputs(launch.spot, asked.facts["spot_request"])})


def _automatic_address(request: Request, launch: Launch, subnet: Record) -> str | None:
    wanted = launch.interfaces[0].associate_public_ip
    if len(launch.interfaces) > 1 or wanted is False or not (wanted or subnet.outputs["mapPublicIpOnLaunch"]):
        return None
    return unused_public_address(request.store)


def _named(request: Request, launch: Launch, vpc_id: str) -> Properties:
    """The names of the network and the machine: the cluster's and the node's, unless they are taken."""
    cluster, slot = launch.tags.get(NAME_TAG), launch.tags.get(SLOT_TAG)
    vpc = request.store.get(VPC, vpc_id)
    network = network_name(request.store, vpc) if vpc is not None else vpc_id
    if vpc is not None and is_existing(vpc) and cluster is not None:
        network = cluster  # clusters in one VPC each get their own network on this computer
    node = request.id if cluster is None or slot is None else f"{cluster}-{slot}"
    if any(row.facts["network"] == network and row.facts["node"] == node for row in request.store.live(INSTANCE)):
        node = request.id
    return {"network": network, "node": node}


def network_name(store: Store, vpc: Record) -> str:
    """The name of a VPC's network here: its name tag, lengthened if an older VPC has the same; or its id."""
    name = vpc.tags.get(NAME_TAG)
    if name is None:
        return vpc.id
    first = next(row for row in store.live(VPC) if row.tags.get(NAME_TAG) == name)
    return name if first.id == vpc.id else f"{name}-{vpc.id[-6:]}"
