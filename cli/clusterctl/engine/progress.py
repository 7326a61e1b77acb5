"""What a run has done so far, as a pure model fed with events; lines for a person come out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from clusterctl_infra.names import SLOT_TAG

from clusterctl.engine.events import Event, Message, Step
from clusterctl.engine.state import INSTANCE_TYPE

Group = Literal["network", "storage", "capacity", "nodes"]
GROUPS: tuple[Group, ...] = ("network", "storage", "capacity", "nodes")
_STORAGE = ("aws:fsx/", "aws:efs/", "aws:s3/", "aws:ebs/")
_CAPACITY = ("aws:ec2/capacityReservation:", "aws:ec2/placementGroup:", "aws:ec2/capacityBlockReservation:")
_UNCOUNTED = ("aws:ec2/eip:", "aws:ec2/eipAssociation:", "aws:ec2/launchTemplate:")
"""Parts of a node that are not counted beside it."""


@dataclass
class GroupProgress:
    """One line of the display."""

    began: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    began_at: float | None = None
    ended_at: float | None = None

    @property
    def is_quiet(self) -> bool:
        """Whether none of the group's resources is being changed."""
        return self.began <= self.done | self.failed


@dataclass
class Progress:
    """All groups, and which instance is in which slot."""

    groups: dict[Group, GroupProgress] = field(default_factory=lambda: {group: GroupProgress() for group in GROUPS})
    instances: dict[int, str] = field(default_factory=dict)
    """Slot → instance id, as soon as the engine knows it."""
    notes: dict[str, str] = field(default_factory=dict)
    """URN → what its provider says now."""

    def feed(self, event: Event, *, at: float) -> None:
        """Takes one event in; `at` is a monotonic time."""
        if isinstance(event, Step) and event.type.startswith("aws:") and not event.type.startswith(_UNCOUNTED):
            self._step(event, at)
        elif isinstance(event, Message) and event.ephemeral and event.urn:
            self.notes[event.urn] = event.text

    def finished_groups(self) -> tuple[Group, ...]:
        """The changed groups other than nodes, once a node has begun: nodes wait for all of those."""
        if not self.groups["nodes"].changed:
            return ()
        return tuple(group for group in GROUPS[:-1] if self.groups[group].changed)

    def _step(self, step: Step, at: float) -> None:
        group = self.groups[group_of(step.type)]
        if step.op != "same":
            group.changed.add(step.urn)
            group.began_at = at if group.began_at is None else group.began_at
        if step.stage == "began":
            group.began.add(step.urn)
            return
        (group.done if step.stage == "done" else group.failed).add(step.urn)
        if step.op != "same":
            group.ended_at = at
        self.notes.pop(step.urn, None)
        self._instance(step)

    def _instance(self, step: Step) -> None:
        slot = (step.inputs.get("tags") or {}).get(SLOT_TAG) if step.type == INSTANCE_TYPE else None
        if slot is None or step.stage != "done" or not step.id:
            return
        if step.op.startswith("delete"):
            if self.instances.get(int(slot)) == step.id:
                del self.instances[int(slot)]
        else:
            self.instances[int(slot)] = step.id


def group_of(type: str) -> Group:
    """Which line a resource type counts in."""
    if type.startswith(_STORAGE):
        return "storage"
    if type.startswith(_CAPACITY):
        return "capacity"
    return "nodes" if type == INSTANCE_TYPE else "network"


def group_line(name: Group, group: GroupProgress, *, now: float, is_ending: bool = False) -> str:
    """` network     9/9   ✓ 3 s`; ` ended` is added where `is_ending`."""
    count = f"{len(group.done & group.changed)}/{len(group.changed)}"
    if not group.changed:
        return f" {name:<11} {len(group.done)} unchanged"
    mark = "✗" if group.failed else "✓" if group.is_quiet else "…"
    seconds = (group.ended_at if group.is_quiet and group.ended_at else now) - (group.began_at or now)
    return f" {name:<11} {count:<7} {mark} {clock_text(seconds)}" + (" ended" if is_ending else "")


def live_line(progress: Progress, *, now: float, began_at: float) -> str:
    """One line about the resources that are being changed."""
    parts = [
        f"{name} {len(group.done & group.changed)}/{len(group.changed)}"
        for name, group in progress.groups.items()
        if group.changed and not group.is_quiet
    ]
    notes = [f"{urn.rsplit('::', 1)[-1]}: {text}" for urn, text in list(progress.notes.items())[:2]]
    return " · ".join([clock_text(now - began_at), *parts, *notes])


def clock_text(seconds: float) -> str:
    """`3 s` below a minute, `7:52` above."""
    whole = int(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60}:{whole % 60:02d}"


def summary(changes: Mapping[str, int]) -> str:
    """`31 created, 2 updated`; `nothing changed` when all is the same."""
    words = {"create": "created", "update": "updated", "delete": "deleted", "replace": "replaced"}
    parts = [f"{count} {words[op]}" for op, count in changes.items() if op in words and count]
    return ", ".join(parts) or "nothing changed"
