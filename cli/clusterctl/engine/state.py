"""What `pulumi stack export` says, as far as clusterctl reads it: resources, pending operations, our own resources."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any  # JSON objects before they are checked

from clusterctl_infra.catalog.instance import FIRST_LAYOUT
from clusterctl_infra.errors import EngineError
from clusterctl_infra.identity import Identity, stand_in_identity
from clusterctl_infra.ledger import Ledger, ledger_from_json
from clusterctl_infra.names import BIRTH_TAG, IDENTITY_TYPE, MEMBERSHIP_TYPE, SLOT_TAG
from clusterctl_infra.replaceable import SPOT_FACT, birth_facts
from clusterctl_infra.strict_json import Fields, NotAsExpected, shortened, whole_number

MOST_ROWS = 1_000_000

EIP_TYPE = "aws:ec2/eip:Eip"
INSTANCE_TYPE = "aws:ec2/instance:Instance"
LAUNCH_TEMPLATE_TYPE = "aws:ec2/launchTemplate:LaunchTemplate"
PLACEMENT_GROUP_TYPE = "aws:ec2/placementGroup:PlacementGroup"
RESERVATION_TYPE = "aws:ec2/capacityReservation:CapacityReservation"
ROUTE_TYPE = "aws:ec2/route:Route"


@dataclass(frozen=True, kw_only=True)
class StateResource:
    """One resource of the state."""

    urn: str
    type: str
    id: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    is_custom: bool = True
    is_external: bool = False
    """Whether the program only reads it, and does not manage it."""
    is_protected: bool = False
    """Whether it is protected, so that the engine deletes it in no run."""
    is_replaced: bool = False
    """Another resource with its URN is there already; the next run of the engine ends this one."""
    is_ended: bool = False
    """The engine has ended it, and failed to make its replacement: the next run makes that. No refresh takes
    it out of the state (engine 3.250, RefreshStep; tried 2026-11-22)."""
    trigger: str = ""
    """Its replacement trigger; empty without one."""


@dataclass(frozen=True, kw_only=True)
class PendingOperation:
    """What the engine was doing when it was killed."""

    kind: str
    """`creating`, `updating`, `deleting`, …"""
    urn: str
    type: str


@dataclass(frozen=True, kw_only=True)
class SlotInstance:
    """The instance that the state has for a slot."""

    slot: int
    instance_id: str
    urn: str
    trigger: str = ""
    """What it is made of: `replaceable.trigger_facts` reads it."""
    birth: str | None = None
    """The settings that it took on at its birth alone, as `replaceable.birth_facts` reads them."""
    instance_type: str | None = None
    """As AWS said when it was made; None in a state that does not tell."""
    is_ended: bool = False
    """The engine has ended it, and made none in its place."""

    @property
    def is_spot(self) -> bool:
        """Whether it was made with a maximum price."""
        return SPOT_FACT in birth_facts(self.birth or "")


@dataclass(frozen=True, kw_only=True)
class StackState:
    """A stack's state; empty when it was never run."""

    resources: tuple[StateResource, ...] = ()
    pending: tuple[PendingOperation, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it has no resource but the stack itself, providers and components."""
        return not any(resource.is_custom for resource in self.resources)

    def of_type(self, type: str) -> tuple[StateResource, ...]:
        """The resources of one type, in the state's order."""
        return tuple(resource for resource in self.resources if resource.type == type)

    def find(self, type: str) -> StateResource | None:
        """The first resource of a type, in the state's order; None: there is none."""
        return next(iter(self.of_type(type)), None)

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, from the Identity resource."""
        identity = self.find(IDENTITY_TYPE)
        return None if identity is None else str(identity.outputs.get("cluster_id") or "") or None

    @property
    def cluster_name(self) -> str | None:
        """The name that the cluster was born with."""
        identity = self.find(IDENTITY_TYPE)
        return None if identity is None else str(identity.outputs.get("name") or "") or None

    @property
    def instances(self) -> tuple[SlotInstance, ...]:
        """The instances by slot, with those that the engine has ended without making others in their place."""
        return tuple(sorted(self._instances(), key=lambda instance: instance.slot))

    @property
    def machines(self) -> tuple[SlotInstance, ...]:
        """The instances that the engine has not ended: they run, as far as the state knows."""
        return tuple(instance for instance in self.instances if not instance.is_ended)

    @property
    def empty_places(self) -> int:
        """How many reserved places no machine of the state is in; machines of another type are in none."""
        places = Counter[str]()
        for reservation in self.of_type(RESERVATION_TYPE):
            places[str(reservation.inputs.get("instanceType"))] += int(reservation.inputs.get("instanceCount", 0))
        places.subtract(str(machine.instance_type) for machine in self.machines)
        return sum(empty for empty in places.values() if empty > 0)

    @property
    def physical_ids(self) -> dict[str, frozenset[str]]:
        """Type → everything that names its resources in the cloud: ids, ARNs and names of custom resources."""
        types = {resource.type for resource in self.resources if resource.is_custom}
        return {
            type: frozenset(name for resource in self.of_type(type) for name in names_of(resource)) for type in types
        }

    def without(self, urns: Iterable[str]) -> StackState:
        """The state without these resources."""
        gone = frozenset(urns)
        return replace(self, resources=tuple(resource for resource in self.resources if resource.urn not in gone))

    def _instances(self) -> Iterator[SlotInstance]:
        for resource in self.of_type(INSTANCE_TYPE):
            tags = resource.inputs.get("tags") or {}
            if (slot := tags.get(SLOT_TAG)) is not None:
                number = whole_number(slot)
                if number is None:
                    raise NotAsExpected(f"{resource.urn}: its tag {SLOT_TAG} is {shortened(slot)}, no slot")
                yield SlotInstance(
                    slot=number,
                    instance_id=resource.id,
                    urn=resource.urn,
                    trigger=resource.trigger,
                    birth=tags.get(BIRTH_TAG),
                    instance_type=resource.outputs.get("instanceType"),
                    is_ended=resource.is_ended,
                )


def parse_state(text: str) -> StackState:
    """The state in the export's JSON. Raises NotAsExpected, a ValueError, which names what cannot be read."""
    try:
        deployment = Fields.of(json.loads(text)).fields_or_none("deployment") or Fields({})
    except (ValueError, RecursionError) as e:
        raise NotAsExpected(str(e)) from e
    return state_of(deployment)


def state_of(deployment: Fields) -> StackState:
    """The state that an export has as its `deployment`. Raises NotAsExpected."""
    state = StackState(
        resources=tuple(_resource(row) for row in deployment.objects("resources", most=MOST_ROWS)),
        pending=tuple(_pending(row) for row in deployment.objects("pending_operations", most=MOST_ROWS)),
    )
    _refuse_unreadable(state)
    return state


def _refuse_unreadable(state: StackState) -> None:
    """Reads now whatever is read later, so that no command fails in the middle. Raises NotAsExpected."""
    readers: tuple[Callable[[StackState], object], ...] = (
        lambda state: (state.instances, state.empty_places),
        lambda state: (generation_in(state), ledger_in(state), deadline_in(state)),
    )
    for read in readers:
        try:
            read(state)
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as e:
            raise NotAsExpected(f"{type(e).__name__}: {e}") from e


def identity_in(state: StackState, *, region: str) -> Identity | None:
    """The cluster's identity with a stand-in for its secret seed, which stays in the state. Raises EngineError."""
    resource = state.find(IDENTITY_TYPE)
    if resource is None:
        return None
    outputs = Fields(resource.outputs)
    try:
        owner, started_at = outputs.text("owner"), outputs.moment("started_at")
        return Identity(
            cluster_id=outputs.text("cluster_id"),
            started_at=started_at,
            run=outputs.whole("run"),
            owner=owner,
            image_id=outputs.text("image_id"),
            zone=outputs.text("zone"),
            seed=stand_in_identity(owner=owner, image_id=None, zone=None, region=region, now=started_at).seed,
            layout=outputs.whole("layout") if outputs.has("layout") else FIRST_LAYOUT,
        )
    except NotAsExpected as e:
        raise EngineError(f"the state's {resource.urn} cannot be read: {e}", hint="pulumi stack export") from e


def names_of(resource: StateResource) -> Iterator[str]:
    """Everything that names the resource in the cloud: its id, ARN, name."""
    yield resource.id
    for key in ("arn", "name", "allocationId", "securityGroupRuleId", "keyPairId"):
        value = resource.outputs.get(key)
        if isinstance(value, str) and value:
            yield value
    if resource.type == ROUTE_TYPE:  # a route has no id of its own: its table and where it leads
        yield f"{resource.inputs.get('routeTableId')}/{resource.inputs.get('destinationCidrBlock')}"


def ledger_in(state: StackState) -> Ledger | None:
    """The ledger kept in the Membership; None when there is none yet."""
    membership = state.find(MEMBERSHIP_TYPE)
    rows = None if membership is None else membership.outputs.get("ledger")
    return None if not isinstance(rows, list) else ledger_from_json(rows)


def generation_in(state: StackState) -> int:
    """The number of the membership; 0 before there is one."""
    membership = state.find(MEMBERSHIP_TYPE)
    return 0 if membership is None else int(membership.outputs.get("generation") or 0)


def deadline_in(state: StackState) -> datetime | None:
    """The deadline in the membership; None before there is one."""
    membership = state.find(MEMBERSHIP_TYPE)
    text = "" if membership is None else str(membership.outputs.get("deadline") or "")
    return datetime.fromisoformat(text) if text else None


def _resource(row: Fields) -> StateResource:
    type = row.text_or_none("type") or ""
    return StateResource(
        urn=row.text_or_none("urn") or "",
        type=type,
        id=row.text_or_none("id") or "",
        inputs=(row.fields_or_none("inputs") or _NOTHING).row,
        outputs=(row.fields_or_none("outputs") or _NOTHING).row,
        is_custom=row.flag("custom") and not type.startswith("pulumi:"),
        is_external=row.flag("external"),
        is_protected=row.flag("protect"),
        is_replaced=row.flag("delete"),
        is_ended=row.flag("pendingReplacement"),
        trigger=str(row.row.get("replacementTrigger") or ""),
    )


def _pending(row: Fields) -> PendingOperation:
    resource = row.fields_or_none("resource") or _NOTHING
    return PendingOperation(
        kind=row.text_or_none("type") or "",
        urn=resource.text_or_none("urn") or "",
        type=resource.text_or_none("type") or "",
    )


_NOTHING = Fields({})
