"""Machines of the cluster that are in no state: every change ends them first, and says so before it asks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from clusterctl.cloud.instances import InstanceState
from clusterctl.engine.repair import state_at_rest, unknown_machines
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.change import Change
from clusterctl.text.quantities import count, duration

SHOWN = 3
"""How many are named; the others are counted."""


def preview_unknown(change: Change, state: StackState) -> None:
    """Names the machines that the repair will end. Raises EngineError when they are of a run under way, CloudError.

    A run that was killed leaves such machines; so does a person who took one out of the state, and may still want it.
    """
    if not unknown_machines(lambda: change.clients, state):
        return
    for line in unknown_lines(
        unknown_machines(lambda: change.clients, state_at_rest(change.engine, change.tell)), now=datetime.now(UTC)
    ):
        change.output.note(f"  ends     {line}")


def unknown_lines(unknown: Sequence[InstanceState], *, now: datetime) -> list[str]:
    """`i-0a1 (slot 3, launched 2 h ago): of this cluster, and in no Pulumi state`. Pure."""
    lines = [f"{_named(instance, now)}: of this cluster, and in no Pulumi state" for instance in unknown[:SHOWN]]
    more = len(unknown) - SHOWN
    return [*lines, f"and {count(more, 'more machine')} like these"] if more > 0 else lines


def _named(instance: InstanceState, now: datetime) -> str:
    slot = [] if instance.slot is None else [f"slot {instance.slot}"]
    age = [] if instance.launched_at is None else [f"launched {duration(now - instance.launched_at)} ago"]
    facts = ", ".join([*slot, *age])
    return f"{instance.instance_id} ({facts})" if facts else instance.instance_id
