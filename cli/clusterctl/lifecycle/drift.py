"""What AWS still has of the instances and other resources that a state knows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.instances import InstanceState, instances_of
from clusterctl.cloud.look import look
from clusterctl.cloud.reservations import reservations_of
from clusterctl.cloud.resource import ResourceType
from clusterctl.cloud.resource_types import KINDS
from clusterctl.cost.standing_rows import WAYS_OUT
from clusterctl.engine.state import RESERVATION_TYPE, SlotInstance, StackState, StateResource, names_of

ENDING = "shutting-down"
ENDING_S = 900.0
"""A big GPU machine takes minutes to end, and has its slot's address until then."""
GROUND = tuple(kind for kind in KINDS if kind.name in ("VPC", "subnet", "launch template", "state machine"))
"""What an `up` cannot do without, and never makes anew by itself."""
BESIDE = tuple(kind for kind in KINDS if kind.name in ("launch template", *WAYS_OUT))
"""What nodes have besides machines, without which none is made anew or reaches anything."""
WAY_OUT_KINDS = tuple(kind for kind in KINDS if kind.name in WAYS_OUT)
POLL_S = 5.0
REHEARSAL_POLL_S = 0.3


@dataclass(frozen=True, kw_only=True)
class Missing:
    """An instance of the state that does not run any more."""

    known: SlotInstance
    seen: InstanceState | None
    """None: AWS does not show it any more."""

    @property
    def why(self) -> str:
        """What AWS calls its condition, with AWS's reason."""
        return "AWS does not know it" if self.seen is None else self.seen.state_and_reason

    def line(self, *, nodes: int) -> str:
        """The line about it, for an `up` to this many nodes."""
        remade = "; the slot is remade" if self.known.slot < nodes else ""
        return f"slot {self.known.slot}: {self.known.instance_id} is gone ({self.why}){remade}"


def missing_instances(clients: Clients, state: StackState, *, tell: Callable[[str], None]) -> tuple[Missing, ...]:
    """The state's instances that are gone; waits for those that are still ending. Raises CloudError."""
    if not state.instances or state.cluster_id is None:
        return ()
    give_up = time.monotonic() + ENDING_S
    is_shown = False
    while True:
        seen = {instance.instance_id: instance for instance in instances_of(clients, state.cluster_id)}
        ending = [instance for instance in seen.values() if instance.state == ENDING]
        if not ending or time.monotonic() > give_up:
            return _missing(state, seen)
        if not is_shown:
            is_shown = True
            tell(f"waiting for {', '.join(instance.instance_id for instance in ending)}, which is ending")
        time.sleep(REHEARSAL_POLL_S if clients.is_rehearsal else POLL_S)


def living_slots(clients: Clients, state: StackState) -> frozenset[int]:
    """The slots whose machine, as the state knows it, is in AWS and not ending. Raises CloudError."""
    if not state.instances or state.cluster_id is None:
        return frozenset()
    alive = {instance.instance_id for instance in instances_of(clients, state.cluster_id) if instance.is_alive}
    return frozenset(instance.slot for instance in state.instances if instance.instance_id in alive)


def gone_spot_machines(clients: Clients, state: StackState) -> tuple[str, ...]:
    """URNs of the state's spot machines that AWS no longer has. Raises CloudError.

    AWS deletes a spot request four hours after its machine has ended (EC2 API, DescribeSpotInstanceRequests), and the
    provider cancels it before it ends the machine: it fails if the request is gone, though it accepts that a machine is
    (terraform-provider-aws, ec2_instance.go; both 2026-11-22).
    """
    known = [instance for instance in state.instances if instance.is_spot]
    if not known or state.cluster_id is None:
        return ()
    there = {
        instance.instance_id
        for instance in instances_of(clients, state.cluster_id)
        if instance.is_alive or instance.state == ENDING
    }
    return tuple(instance.urn for instance in known if instance.instance_id not in there)


def gone_reservations(clients: Clients, state: StackState) -> tuple[str, ...]:
    """URNs of the state's reservations that AWS no longer holds: an early end cancels them. Raises CloudError."""
    known = state.of_type(RESERVATION_TYPE)
    if not known or state.cluster_id is None:
        return ()
    held = {
        reservation.reservation_id for reservation in reservations_of(clients, state.cluster_id) if reservation.is_held
    }
    return tuple(reservation.urn for reservation in known if reservation.id not in held)


def lost_parts(clients: Clients, state: StackState) -> tuple[StateResource, ...]:
    """The parts that every cluster stands on and that are in the state but no longer in AWS, as after `reap`.

    Raises CloudError.

    Asked only where no machine lives: AWS refuses to delete a network that a machine is in.
    """
    if state.cluster_id is None or any(instance.is_alive for instance in instances_of(clients, state.cluster_id)):
        return ()
    return _not_there(clients, state, state.cluster_id, GROUND)


def lost_beside(clients: Clients, state: StackState) -> tuple[StateResource, ...]:
    """The parts that nodes have beside their machines and that are in the state but no longer in AWS.

    Raises CloudError.

    What ends a cluster at its deadline, or early, ends the NAT gateway and the elastic IPs after the machines. A `down`
    of many nodes writes its state at its end: killed, it may have ended some slots wholly and others not at all.
    """
    return () if state.cluster_id is None else _not_there(clients, state, state.cluster_id, BESIDE)


def lost_ways_out(clients: Clients, state: StackState) -> tuple[StateResource, ...]:
    """The NAT gateway and the elastic IPs of the state that AWS no longer has. Raises CloudError."""
    kinds = tuple(kind for kind in WAY_OUT_KINDS if any(state.of_type(type) for type in kind.types))
    return () if state.cluster_id is None or not kinds else _not_there(clients, state, state.cluster_id, kinds)


def _not_there(
    clients: Clients, state: StackState, cluster_id: str, kinds: tuple[ResourceType, ...]
) -> tuple[StateResource, ...]:
    found = look(clients, cluster_id, kinds)
    there = {(thing.kind, name) for thing in found for name in (thing.id, *thing.aliases)}
    return tuple(
        resource
        for kind in kinds
        for type in kind.types
        for resource in state.of_type(type)
        if not resource.is_external and not any((kind.name, name) in there for name in names_of(resource))
    )


def _missing(state: StackState, seen: dict[str, InstanceState]) -> tuple[Missing, ...]:
    return tuple(
        Missing(known=instance, seen=seen.get(instance.instance_id))
        for instance in state.instances
        if instance.instance_id not in seen or not seen[instance.instance_id].is_alive
    )
