"""The life of instances: from pending to terminated, with the machine behind each."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any  # facts are JSON-like

from clusterctl_infra.names import NAME_TAG

from clusterctl_rehearsal.machines.driver import MachineError, MachineState
from clusterctl_rehearsal.refusal import StandInRefusal
from clusterctl_rehearsal.region.existing import is_existing
from clusterctl_rehearsal.region.journal import ENDING_AT
from clusterctl_rehearsal.region.machine_room import MachineRoom
from clusterctl_rehearsal.region.placement import network_name
from clusterctl_rehearsal.region.record import Properties, Record
from clusterctl_rehearsal.region.scheduled_events import COMPLETED, ENDS, EVENTS, REBOOTS, due, turned
from clusterctl_rehearsal.region.spot_notices import TAKEN_BACK_AT, taken_back_at
from clusterctl_rehearsal.region.store import Store
from clusterctl_rehearsal.region.types.addresses import EIP_ASSOCIATION, elastic_address_of
from clusterctl_rehearsal.region.types.network import INSTANCE, NETWORK_INTERFACE, VPC
from clusterctl_rehearsal.region.types.row import Request

Reason = tuple[str, str]
USER_INITIATED: Reason = ("Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown")
INSTANCE_INITIATED: Reason = (
    "Client.InstanceInitiatedShutdown",
    "Client.InstanceInitiatedShutdown: Instance initiated shutdown",
)
SPOT_INTERRUPTED: Reason = (
    "Server.SpotInstanceTermination",
    "Server.SpotInstanceTermination: Spot instance termination",
)
HOST_FAILED: Reason = ("Server.InternalError", "Server.InternalError: hardware failure (simulated)")
"""AWS has this code for a launch that failed, and none for a machine that dies later (EC2 API, StateReason;
2026-11-22): so the message is ours."""
RETIRED: Reason = ("Server.ScheduledStop", "Server.ScheduledStop: Stopped due to a scheduled retirement")
"""AWS's message for a machine that it stopped (EC2 API, StateReason; 2026-11-26). Here such a machine ends instead."""
_INITIATED = {USER_INITIATED[0]: "User", SPOT_INTERRUPTED[0]: "Service"}
_STOPS = ("instanceType", "userData", "userDataBase64")
"""Inputs that the provider changes by stopping and starting the instance (its ec2_instance.go)."""
REMEMBERED_S = 3600.0
"""How long AWS shows a terminated instance: about an hour (EC2 user guide, "Terminate instances")."""


class Instances:
    """Starts and ends instances; `lock` guards every record of the region and is not held while machines boot."""

    def __init__(self, *, store: Store, room: MachineRoom, clock: Callable[[], float] = time.time) -> None:
        self.store = store
        self.room = room
        self.clock = clock
        self.lock = threading.RLock()

    def start(self, record: Record, progress: Callable[[str], None]) -> Record:
        """The running instance. If its machine cannot be made, terminates it and raises MachineError."""
        if record.state != "pending":
            return record
        try:
            machines = self.room.boot(record, progress)
        except MachineError as e:
            self._end(record.id, ("Server.InternalError", str(e)))
            raise
        with self.lock:
            now = self.store.get(INSTANCE, record.id) or record
            if not now.is_live:  # a fault was quicker
                return now
            return self.store.put(now.changed(state="running", machines=machines))

    def outputs(self, record: Record) -> Properties:
        """What the provider shows of the instance now. Raises StandInRefusal where the provider could not read it."""
        public = (elastic_address_of(self.store, record) if record.is_live else None) or record.facts["public_ip"] or ""
        dns = f"ec2-{public.replace('.', '-')}.{record.region}.compute.amazonaws.com" if public else ""
        shown = {**record.outputs, **_user_data_read_back(record)}
        return {**shown, "instanceState": record.state, "publicIp": public, "publicDns": dns}

    def changed(self, old: Record, request: Request) -> Record:
        """The instance after an update in place. Raises StandInRefusal for what AWS does by stopping it."""
        for key in _STOPS:
            if key in old.inputs and request.inputs.get(key) != old.inputs[key]:
                raise StandInRefusal(f"the stand-in does not change {key} of a running instance yet")
        tags = {**(old.tags if "tags" not in request.inputs else {}), **(request.inputs.get("tags") or {})}
        outputs = {**old.outputs, **request.inputs, "tagsAll": {**_template_tags(old), **tags}}
        return dataclasses.replace(old, inputs=request.inputs, outputs=outputs)

    def shut_down(self, record: Record, reason: Reason = USER_INITIATED) -> Record:
        """The instance, shutting down from now on unless it already was, or has ended."""
        with self.lock:
            now = self.store.get(INSTANCE, record.id) or record
            if not now.is_live or now.state == "shutting-down":
                return now
            ending = now.changed(state="shutting-down", reason=list(reason), **{ENDING_AT: self.clock()})
            return self.store.put(ending)

    def terminate(self, record: Record, reason: Reason = USER_INITIATED) -> None:
        """Ends the instance and returns when its machine is gone."""
        if self.shut_down(record, reason).is_live:
            self.finish(record, reason)

    def finish(self, record: Record, reason: Reason = USER_INITIATED) -> None:
        """Kills the machine of an instance that is shutting down, which then is terminated."""
        self.room.kill(record)
        self._end(record.id, reason)

    def end_network(self, vpc: Record) -> None:
        """Removes the VPC's network on this computer, once its instances are gone."""
        self.room.delete_network(network_name(self.store, vpc))

    def leave_network(self, group: Record) -> None:
        """Removes the network of a cluster in an existing VPC from this computer, once its instances are gone.

        `group`: the cluster's security group.
        """
        vpc, cluster = self.store.get(VPC, group.inputs["vpcId"]), group.tags.get(NAME_TAG)
        if vpc is not None and is_existing(vpc) and cluster is not None:
            self.room.delete_network(cluster)

    def watch(self) -> None:
        """Looks at every machine once: instances whose machines ended by themselves become terminated.

        Also ends spot machines whose notice is over, carries out scheduled events that are due (both late if no region
        ran at that moment), and forgets instances that ended long ago.
        """
        for record in list(self.store.live(INSTANCE)):
            if taken_back_at(record) is not None and self.clock() >= record.facts[TAKEN_BACK_AT]:
                self.terminate(record, SPOT_INTERRUPTED)
        for record in list(self.store.live(INSTANCE)):
            self._carry_out_event(record)
        for record in list(self.store.live(INSTANCE)):
            if record.state == "running" and self.room.state(record) is MachineState.GONE:
                self._end(record.id, INSTANCE_INITIATED)
        for record in self.store.all(INSTANCE):
            ended_at = record.facts.get("ended_at")
            if ended_at is not None and self.clock() - ended_at > REMEMBERED_S:
                with self.lock:
                    self.store.forget(record)

    def note(self, record: Record, **facts: Any) -> Record:  # JSON values
        """The instance with these facts changed and stored; all others, also its state, are as they are now."""
        with self.lock:
            return self.store.put((self.store.get(INSTANCE, record.id) or record).changed(**facts))

    def _carry_out_event(self, record: Record) -> None:
        event = due(record, self.clock())
        if event is None or record.state != "running":
            return
        code = event["code"]
        now = self.note(record, **{EVENTS: turned(record, code, COMPLETED)})
        if code in ENDS:
            self.terminate(now, RETIRED)
        elif code in REBOOTS:
            with contextlib.suppress(MachineError):  # a machine that is not up yet boots anyway
                self.room.driver(now.facts["machines"]).reboot(now.facts["network"], now.facts["node"])

    def adopt(self) -> None:
        """After a restart: takes over machines that still run, and finishes starts and ends that were under way."""
        for record in list(self.store.live(INSTANCE)):
            if record.state == "shutting-down":
                self.finish(record)
            elif record.state == "running" and not self.room.adopt(record):
                self._end(record.id, INSTANCE_INITIATED)
            elif record.state == "pending":
                self.room.kill(record)
                with contextlib.suppress(MachineError):  # then it is terminated, and says why
                    self.start(record, lambda message: None)

    def _end(self, id: str, reason: Reason) -> None:
        with self.lock:
            record = self.store.get(INSTANCE, id)
            if record is None or not record.is_live:
                return
            first_reason, now = record.facts.get("reason") or list(reason), self.clock()
            since = record.facts.get(ENDING_AT, now)
            facts = {"reason": first_reason, "ended_at": now, ENDING_AT: since, "public_ip": None}
            ended = record.changed(state="terminated", **facts)
            kept = [card for card in record.facts["interfaces"] if not card["delete"]]
            self.store.put(dataclasses.replace(ended, refs=()))
            for card in kept:
                self.store.put(
                    loose_interface(card, region=record.region, vpc=record.facts["vpc"], now=record.created_at)
                )
            targets = {record.id, *(card["id"] for card in record.facts["interfaces"])}
            for row in list(self.store.live(EIP_ASSOCIATION)):
                if targets & {row.inputs.get("instanceId"), row.inputs.get("networkInterfaceId")}:
                    self.store.forget(row)


def loose_interface(card: Properties, *, region: str, vpc: str, now: float) -> Record:
    """The record of an interface that no machine has."""
    return Record(
        id=card["id"],
        token=NETWORK_INTERFACE,
        region=region,
        inputs={},
        outputs={"tagsAll": card.get("tags") or {}},
        refs=(card["subnet"], *card["groups"]),
        facts={"ip": card["ip"], "vpc": vpc, "card": card},
        created_at=now,
    )


def launched_at(record: Record) -> str:
    """When the resource was made, as the EC2 API writes it."""
    return instant(record.created_at)


def instant(seconds: float) -> str:
    """Seconds since 1970 as the EC2 API writes them."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def transition_reason(record: Record) -> str:
    """EC2's StateTransitionReason; with the instant, to the second, where a user or the spot market asked for the end.

    `User initiated (2026-01-31 23:59:59 GMT)` is what AWS answers after TerminateInstances, and `Service initiated` for
    a spot machine that it took back (quoted by several public programs; 2026-11-22). No instant is documented for a
    machine that shut itself down (EC2 API, Instance; 2026-11-21): here it has none.
    """
    code, message = record.facts.get("reason") or ("", "")
    if code not in _INITIATED or ENDING_AT not in record.facts:
        return str(message)
    at = datetime.fromtimestamp(record.facts[ENDING_AT], UTC)
    return f"{_INITIATED[code]} initiated ({at:%Y-%m-%d %H:%M:%S} GMT)"


def _user_data_read_back(record: Record) -> Properties:
    """User-data as the provider reads it back: as text, unless the instance was given it as base64.

    That includes the launch template's user-data. Raises StandInRefusal for gzip, which is no text: the provider could
    not send its answer about the machine that it has just made (terraform-provider-aws 6, ec2_instance.go; its issues
    44506 and 48793, open; checked 2026-11).
    """
    encoded = record.facts["user_data"]
    if record.inputs.get("userDataBase64") or not encoded:
        return {}
    try:
        return {"userData": base64.b64decode(encoded).decode()}
    except UnicodeDecodeError as e:
        raise StandInRefusal(
            f"reading EC2 Instance ({record.id}): grpc: error while marshaling: string field contains invalid UTF-8: "
            "user-data that is no text must be the instance's own user_data_base64, not its template's user_data"
        ) from e


def _template_tags(record: Record) -> dict[str, str]:
    own = record.inputs.get("tags") or {}
    return {key: value for key, value in record.tags.items() if key not in own}
