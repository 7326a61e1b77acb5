"""EC2's calls for network interfaces that a client makes on their own; those of machines come with RunInstances.

They are only data: a booted machine keeps the interfaces that it was started with.
"""

from __future__ import annotations

import dataclasses
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api import ec2_compute_views as compute
from clusterctl_rehearsal.api.call import Call, Handler
from clusterctl_rehearsal.api.making import living, refuse_dry_run, tags_of
from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.instances import loose_interface
from clusterctl_rehearsal.region.record import Properties, Record
from clusterctl_rehearsal.region.subnets import check_address, free_address
from clusterctl_rehearsal.region.types.launch import mac_address
from clusterctl_rehearsal.region.types.network import INSTANCE, NETWORK_INTERFACE, SECURITY_GROUP, SUBNET
from clusterctl_rehearsal.region.types.row import random_hex

Answer = dict[str, Any]
KINDS = ("interface", "efa", "efa-only")


def _create(call: Call) -> Answer:
    refuse_dry_run(call)
    asked = call.parameters
    store, kind = call.region.store, str(asked.get("InterfaceType") or "interface")
    subnet = call.find(SUBNET, asked["SubnetId"])
    if subnet is None:
        raise AwsError("InvalidSubnetID.NotFound", f"The subnet ID '{asked['SubnetId']}' does not exist")
    for group in asked.get("Groups") or []:
        if call.find(SECURITY_GROUP, group) is None:
            raise AwsError("InvalidGroup.NotFound", f"The security group '{group}' does not exist")
    if kind not in KINDS:
        raise AwsError("InvalidParameterValue", f"Value ({kind}) for parameter interfaceType is invalid.")
    wanted = asked.get("PrivateIpAddress")
    ip = None if kind == "efa-only" else check_address(store, subnet, wanted) if wanted else None
    if kind != "efa-only" and ip is None:
        ip = free_address(store, subnet, besides=set())
    id, groups, tags = f"eni-{random_hex(17)}", list(asked.get("Groups") or []), tags_of(call)
    card: Properties = {
        "id": id,
        "card": 0,
        "device": 0,
        "kind": kind,
        "subnet": subnet.id,
        "ip": ip,
        "mac": mac_address(ip) if ip else f"02:01:{random_hex(2)}:{random_hex(2)}:00:00",
        "groups": groups,
        "delete": False,
        "tags": tags,
        "description": asked.get("Description") or "",
    }
    row = store.put(loose_interface(card, region=call.region_name, vpc=subnet.inputs["vpcId"], now=call.region.clock()))
    return {"NetworkInterface": compute.loose_interface(row)}


def _attach(call: Call) -> Answer:
    refuse_dry_run(call)
    asked = call.parameters
    row, instance = _loose(call, asked["NetworkInterfaceId"]), _living(call, asked["InstanceId"])
    if instance.facts.get("machines") not in (None, "none"):
        raise StandInRefusal("the stand-in attaches no network interface to a machine that was booted")
    place = (int(asked.get("NetworkCardIndex") or 0), int(asked["DeviceIndex"]))
    cards = instance.facts["interfaces"]
    if place in [(card["card"], card["device"]) for card in cards]:
        message = f"Instance '{instance.id}' already has an interface attached at device index '{place[1]}'."
        raise AwsError("InvalidParameterValue", message)
    if row.facts["vpc"] != instance.facts["vpc"]:
        raise AwsError("InvalidParameterCombination", "You may not attach a network interface of another VPC.")
    card = {**row.facts["card"], "card": place[0], "device": place[1], "tags": row.tags}
    call.region.store.forget(row)
    refs = tuple(dict.fromkeys((*instance.refs, *row.refs)))
    call.region.store.put(dataclasses.replace(instance, refs=refs).changed(interfaces=[*cards, card]))
    return {"AttachmentId": compute.attachment_id(card), "NetworkCardIndex": place[0]}


def _detach(call: Call) -> Answer:
    refuse_dry_run(call)
    wanted = call.parameters["AttachmentId"]
    for instance in call.records(INSTANCE):
        for card in instance.facts["interfaces"] if instance.is_live else []:
            if compute.attachment_id(card) == wanted:
                return _detached(call, instance, card)
    raise AwsError("InvalidAttachmentID.NotFound", f"The attachment '{wanted}' does not exist")


def _detached(call: Call, instance: Record, card: Properties) -> Answer:
    if (card["card"], card["device"]) == (0, 0):
        message = "The network interface at device index 0 and networkCard index 0 cannot be detached."
        raise AwsError("OperationNotPermitted", message)
    kept = [other for other in instance.facts["interfaces"] if other["id"] != card["id"]]
    call.region.store.put(instance.changed(interfaces=kept))
    vpc, now = instance.facts["vpc"], call.region.clock()
    call.region.store.put(loose_interface(card, region=call.region_name, vpc=vpc, now=now))
    return {}


def _delete(call: Call) -> Answer:
    refuse_dry_run(call)
    id = call.parameters["NetworkInterfaceId"]
    if attached_card(call, id) is not None:
        raise AwsError("InvalidNetworkInterface.InUse", f"Network interface '{id}' is currently in use.")
    call.region.delete(NETWORK_INTERFACE, living(call, NETWORK_INTERFACE, id).id)
    return {}


def _modify(call: Call) -> Answer:
    """Changes an interface's groups, description, and source and destination check, which has no effect here."""
    refuse_dry_run(call)
    asked, id = call.parameters, call.parameters["NetworkInterfaceId"]
    changed: Properties = {}
    if asked.get("Groups"):
        changed["groups"] = list(asked["Groups"])
    for key, name in (("Description", "description"), ("SourceDestCheck", "source_dest_check")):
        if key in asked:
            changed[name] = asked[key]["Value"]
    found = attached_card(call, id)
    if found is None:
        row = _loose(call, id)
        card = {**row.facts["card"], **changed}
        call.region.store.put(dataclasses.replace(row, refs=(card["subnet"], *card["groups"])).changed(card=card))
        return {}
    instance, _ = found
    change_card(call, instance, id, changed)
    return {}


def change_card(call: Call, instance: Record, id: str, changed: Properties) -> None:
    """Changes facts of one interface of a machine, and stores the machine."""
    cards = [{**card, **changed} if card["id"] == id else card for card in instance.facts["interfaces"]]
    refs = tuple(dict.fromkeys((*instance.refs, *changed.get("groups", ()))))
    call.region.store.put(dataclasses.replace(instance, refs=refs).changed(interfaces=cards))


def attached_card(call: Call, id: str) -> tuple[Record, Properties] | None:
    """The living machine that has the interface, and the interface; None if no machine has it."""
    for instance in call.records(INSTANCE):
        for card in instance.facts["interfaces"] if instance.is_live else []:
            if card["id"] == id:
                return instance, card
    return None


def _loose(call: Call, id: str) -> Record:
    row = call.find(NETWORK_INTERFACE, id)
    if row is not None:
        return row
    if attached_card(call, id) is not None:
        raise AwsError("InvalidNetworkInterface.InUse", f"Interface: [{id}] in use.")
    raise AwsError("InvalidNetworkInterfaceID.NotFound", f"The networkInterface ID '{id}' does not exist")


def _living(call: Call, id: str) -> Record:
    row = call.find(INSTANCE, id)
    if row is None:
        raise AwsError("InvalidInstanceID.NotFound", f"The instance ID '{id}' does not exist")
    if row.state not in ("running", "stopped"):
        raise AwsError("IncorrectState", f"The instance '{id}' is not in a valid state for this operation: {row.state}")
    return row


INTERFACES: dict[str, Handler] = {
    "CreateNetworkInterface": _create,
    "AttachNetworkInterface": _attach,
    "DetachNetworkInterface": _detach,
    "DeleteNetworkInterface": _delete,
    "ModifyNetworkInterfaceAttribute": _modify,
}
