"""A stack of four nodes, its state, and what is wanted of it."""

from __future__ import annotations

from datetime import UTC, datetime

from clusterctl.engine.stack import Stack
from clusterctl.engine.state import StackState, StateResource
from clusterctl.lifecycle.intent import Intent, read_intent

BORN = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
CLUSTER = """name: train
region: us-west-2
nodes: 4
instance_type: p5.48xlarge
access: {mode: private}
caps: {runtime: 2h}
"""


def resource(type: str, **outputs: object) -> StateResource:
    return StateResource(urn=f"u::{type}::x", type=type, id="x", outputs=outputs)


def state_of(*more: StateResource, run: int = 1) -> StackState:
    identity = resource(
        "clusterctl:index:Identity",
        name="train",
        cluster_id="0123456789ab",
        started_at=BORN.isoformat(),
        owner="ada",
        image_id="ami-0123456789abcdef0",
        zone="us-west-2b",
        run=run,
    )
    return StackState(resources=(identity, *more))


def intent_of(stack: Stack, text: str = "", *, nodes: int | None = None) -> Intent:
    return read_intent(stack, text, nodes=nodes)
