"""What an `up` would mean for the machines that run: which are ended, which are made anew and why, what waits.

Found from the state alone: a machine is made anew when its trigger changes and for nothing else, and the trigger is in
the state as a text. The engine's own preview would take a second, and ask AWS what the run asks again (ADR 0010).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.names import IDENTITY_TYPE
from clusterctl_infra.plan.model import ClusterPlan
from clusterctl_infra.replaceable import late_facts, trigger_facts

from clusterctl.engine.state import StackState
from clusterctl.text.node_set import fold_names
from clusterctl.text.pending_settings import pending_settings_line

HOST_KEY = "host_key"
"""A fact that is not compared: it follows from the cluster's seed, which is a secret here and never changes."""
_SHOWN = ("image", "instance_type", "subnet")
"""Facts whose values are shown; for the others only that they changed."""
_NAMES = {"instance_type": "instance type", "subnet": "network.node_subnet_cidr"}


@dataclass(frozen=True, kw_only=True)
class NodePreview:
    """One node, and why its machine is made anew, or which settings wait for that."""

    slot: int
    name: str
    reasons: tuple[str, ...]


def ended(state: StackState, cluster_plan: ClusterPlan) -> tuple[str, ...]:
    """The names of the nodes that the plan has no place for any more, by slot."""
    slots = {slot.slot for slot in cluster_plan.slots}
    return tuple(f"{cluster_plan.name}-{instance.slot}" for instance in state.instances if instance.slot not in slots)


def made_anew(state: StackState, config: ClusterConfig, cluster_plan: ClusterPlan) -> tuple[NodePreview, ...]:
    """The nodes whose machines the next run of the engine replaces, by slot."""
    wanted = {slot.slot: trigger_facts(slot.replacement_trigger) for slot in cluster_plan.slots}
    names = {slot.slot: slot.name for slot in cluster_plan.slots}
    image = _image(state, config)
    found = []
    for instance in state.instances:
        if instance.slot not in wanted:
            continue
        reasons = _reasons(trigger_facts(instance.trigger), {**wanted[instance.slot], **image})
        if reasons:
            found.append(NodePreview(slot=instance.slot, name=names[instance.slot], reasons=reasons))
    return tuple(found)


def late(state: StackState, cluster_plan: ClusterPlan, *, except_slots: Iterable[int]) -> tuple[NodePreview, ...]:
    """The nodes that run on without something that a machine made now would have."""
    apart = frozenset(except_slots)
    names = {slot.slot: slot.name for slot in cluster_plan.slots if slot.slot not in apart}
    rows = (
        (instance, late_facts(instance.birth, cluster_plan.birth))
        for instance in state.instances
        if instance.slot in names
    )
    return tuple(
        NodePreview(slot=instance.slot, name=names[instance.slot], reasons=facts) for instance, facts in rows if facts
    )


def slots_of(nodes: Sequence[NodePreview]) -> frozenset[int]:
    """The slots of these nodes."""
    return frozenset(node.slot for node in nodes)


def made_anew_lines(found: Sequence[NodePreview], *, is_reserved: bool = True) -> list[str]:
    """`train-1,3: replaced, the data on their disks is lost: image ami-1 → ami-2`, nodes of one reason together.

    `is_reserved`: whether their places are held while they are made; those of spot machines are not.
    """
    lines = []
    for reasons, nodes in _by_reasons(found).items():
        whose = "its disks" if len(nodes) == 1 else "their disks"
        lines.append(f"{fold_names(nodes)}: replaced, the data on {whose} is lost: {', '.join(reasons)}")
    if lines and not is_reserved:
        lines.append("no place is reserved for spot machines: these end first, and AWS may have none to put there")
    return lines


def late_lines(found: Sequence[NodePreview]) -> list[str]:
    """`train-[0-3]: packages: takes effect when a node is replaced`."""
    return [f"{fold_names(nodes)}: {pending_settings_line(facts)}" for facts, nodes in _by_reasons(found).items()]


def _reasons(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    if not before:
        return ("made by an older clusterctl",)
    changed = [name for name in sorted({*before, *after}) if name != HOST_KEY and before.get(name) != after.get(name)]
    return tuple(_reason(name, before.get(name, "?"), after.get(name, "?")) for name in changed)


def _reason(name: str, before: str, after: str) -> str:
    shown = _NAMES.get(name, name)
    return f"{shown} {before} → {after}" if name in _SHOWN else f"{shown} changed"


def _image(state: StackState, config: ClusterConfig) -> Mapping[str, str]:
    """The image if cluster.yaml names another than at the cluster's birth, else empty: it is resolved only once."""
    identity = state.find(IDENTITY_TYPE)
    named = None if identity is None else identity.outputs.get("image_spec")
    return {} if named is None or named == config.image else {"image": config.image}


def _by_reasons(found: Sequence[NodePreview]) -> dict[tuple[str, ...], list[str]]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for node in found:
        groups.setdefault(node.reasons, []).append(node.name)
    return groups
