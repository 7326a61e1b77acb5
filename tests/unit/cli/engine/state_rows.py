"""Rows of an engine's state, as far as commands look at them."""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl.engine.state import INSTANCE_TYPE, StateResource
from clusterctl_infra.names import SLOT_TAG


def machines(slots: Iterable[int]) -> tuple[StateResource, ...]:
    """An instance in each of these slots."""
    return tuple(
        StateResource(
            urn=f"urn:{slot}",
            type=INSTANCE_TYPE,
            id=f"i-{slot}",
            inputs={"tags": {SLOT_TAG: str(slot)}},
            outputs={"instanceType": "p5.48xlarge"},
        )
        for slot in slots
    )
