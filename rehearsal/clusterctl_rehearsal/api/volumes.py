"""EC2's calls for volumes that a client makes on their own; root disks come and go with their machines.

They are only data, and no bill of a rehearsal shows them: clusterctl makes none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api import ec2_compute_views as compute
from clusterctl_rehearsal.api.call import Call, Handler, tag_list
from clusterctl_rehearsal.api.making import refuse_dry_run, tags_of
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.instances import instant, launched_at
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.types.network import INSTANCE
from clusterctl_rehearsal.region.types.row import random_hex
from clusterctl_rehearsal.region.types.volume import VOLUME

Answer = dict[str, Any]
TYPES = ("gp2", "gp3", "io1", "io2", "st1", "sc1", "standard")


def volumes(call: Call) -> Iterator[Answer]:
    """All volumes, root disks first."""
    yield from compute.volumes(call)
    yield from (_view(call, row) for row in call.records(VOLUME))


def _create(call: Call) -> Answer:
    refuse_dry_run(call)
    asked, kind = call.parameters, str(call.parameters.get("VolumeType") or "gp2")
    zones = [call.region_name + letter for letter in call.region.settings().zones]
    if asked.get("AvailabilityZone") not in zones:
        raise AwsError("InvalidZone.NotFound", f"The zone '{asked.get('AvailabilityZone')}' does not exist.")
    if asked.get("Size") is None:
        raise AwsError("MissingParameter", "The request must contain the parameter size/snapshot")
    if kind not in TYPES:
        raise AwsError("InvalidParameterValue", f"Value ({kind}) for parameter volumeType is invalid.")
    id, tags = f"vol-{random_hex(17)}", tags_of(call)
    inputs = {"availabilityZone": asked["AvailabilityZone"], "size": int(asked["Size"]), "type": kind}
    row = Record(
        id=id,
        token=VOLUME,
        region=call.region_name,
        inputs={**inputs, "encrypted": bool(asked.get("Encrypted")), "tags": tags},
        outputs={"tagsAll": tags},
        created_at=call.region.clock(),
    )
    return _view(call, call.region.store.put(row))


def _attach(call: Call) -> Answer:
    refuse_dry_run(call)
    asked = call.parameters
    row, instance = _volume(call, asked["VolumeId"]), call.find(INSTANCE, asked["InstanceId"])
    if instance is None:
        raise AwsError("InvalidInstanceID.NotFound", f"The instance ID '{asked['InstanceId']}' does not exist")
    if instance.state not in ("running", "stopped"):
        raise AwsError("IncorrectState", f"Instance '{instance.id}' is not 'running'.")
    if _holder(call, row) is not None:
        raise AwsError("VolumeInUse", f"{row.id} is already attached to an instance")
    if instance.facts["zone"] != row.inputs["availabilityZone"]:
        message = f"The volume '{row.id}' is not in the same availability zone as instance '{instance.id}'"
        raise AwsError("InvalidVolume.ZoneMismatch", message)
    attached = row.changed(instance=instance.id, device=asked["Device"], attached_at=call.region.clock())
    return _attachment(call.region.store.put(attached), "attached")


def _detach(call: Call) -> Answer:
    refuse_dry_run(call)
    id = call.parameters["VolumeId"]
    if any(view["VolumeId"] == id for view in compute.volumes(call)):
        raise AwsError("OperationNotPermitted", f"Unable to detach root volume '{id}' from instance")
    row = _volume(call, id)
    if _holder(call, row) is None:
        raise AwsError("IncorrectState", f"Volume '{id}' is in the 'available' state.")
    view = _attachment(row, "detaching")
    call.region.store.put(row.changed(instance=None))
    return view


def _delete(call: Call) -> Answer:
    refuse_dry_run(call)
    id = call.parameters["VolumeId"]
    holder = next((view for view in compute.volumes(call) if view["VolumeId"] == id), None)
    row = None if holder is not None else _volume(call, id)
    if row is None or _holder(call, row) is not None:
        raise AwsError("VolumeInUse", f"Volume {id} is currently attached")
    call.region.store.forget(row)
    return {}


def _volume(call: Call, id: str) -> Record:
    row = call.find(VOLUME, id)
    if row is None:
        raise AwsError("InvalidVolume.NotFound", f"The volume '{id}' does not exist.")
    return row


def _holder(call: Call, row: Record) -> Record | None:
    """The living machine that the volume is attached to; a machine that has ended holds no volume any more."""
    found = call.region.store.get(INSTANCE, row.facts.get("instance") or "")
    return found if found is not None and found.is_live else None


def _view(call: Call, row: Record) -> Answer:
    return {
        "VolumeId": row.id,
        "AvailabilityZone": row.inputs["availabilityZone"],
        "State": "available" if _holder(call, row) is None else "in-use",
        "Size": row.inputs["size"],
        "VolumeType": row.inputs["type"],
        "Encrypted": row.inputs["encrypted"],
        "CreateTime": launched_at(row),
        "Attachments": [] if _holder(call, row) is None else [_attachment(row, "attached")],
        "Tags": tag_list(row.tags),
    }


def _attachment(row: Record, state: str) -> Answer:
    return {
        "VolumeId": row.id,
        "InstanceId": row.facts["instance"],
        "Device": row.facts["device"],
        "State": state,
        "AttachTime": instant(row.facts["attached_at"]),
        "DeleteOnTermination": False,
    }


VOLUMES: dict[str, Handler] = {
    "CreateVolume": _create,
    "AttachVolume": _attach,
    "DetachVolume": _detach,
    "DeleteVolume": _delete,
}
