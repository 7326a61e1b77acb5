"""When an `up` asks for the account's quota of machines on demand."""

from __future__ import annotations

import pytest
from clusterctl.engine.state import StackState, StateResource
from clusterctl.lifecycle.up_checks import adds_on_demand

from tests.unit.infra.plan.plan_cases import a_config


def state_of(machines: int) -> StackState:
    return StackState(
        resources=tuple(
            StateResource(
                urn=f"u::i::{slot}",
                type="aws:ec2/instance:Instance",
                id=f"i-{slot}",
                inputs={"tags": {"clusterctl:slot": str(slot)}},
            )
            for slot in range(machines)
        )
    )


@pytest.mark.parametrize(
    ("capacity", "machines", "anew", "asks"),
    [
        ("on-demand", 0, 0, True),
        ("on-demand", 3, 0, True),
        ("on-demand", 4, 0, False),
        ("on-demand", 6, 0, False),
        ("on-demand", 4, 1, True),
        ("spot", 0, 0, False),
    ],
)
def test_it_is_asked_for_where_machines_come_and_not_of_a_cluster_that_lives(
    capacity: str, machines: int, anew: int, *, asks: bool
) -> None:
    assert adds_on_demand(a_config(nodes=4, capacity=capacity), state_of(machines), anew=anew) is asks
