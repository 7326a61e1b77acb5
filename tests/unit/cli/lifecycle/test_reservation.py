"""Whether a run reserves places: machines that run without a reservation are the only reason not to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clusterctl.engine.state import RESERVATION_TYPE, StackState, StateResource
from clusterctl.lifecycle.intent import Intent
from clusterctl.lifecycle.reservation import left_the_state, reserved_or_not
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.stack import stack_settings

from tests.unit.cli.engine.state_rows import machines
from tests.unit.infra.plan.plan_cases import a_config


def reservation(type: str) -> StateResource:
    return StateResource(urn="urn:reservation", type=RESERVATION_TYPE, id="cr-1", inputs={"instanceType": type})


HELD = reservation("p5.48xlarge")
REPLACED = replace(HELD, is_replaced=True)
OF_THE_NEW_TYPE = reservation("p5e.48xlarge")


@pytest.mark.parametrize(
    ("case", "held", "stays", "is_without"),
    [
        ("both run on", (), (0, 1), True),
        ("one is dead, one runs on", (), (0,), True),
        ("all are made anew", (), (), False),
        ("its reservation holds", (HELD,), (0, 1), False),
        ("another type was reserved, and then not made", (OF_THE_NEW_TYPE, REPLACED), (0, 1), True),
        ("another type was reserved, and theirs is gone", (OF_THE_NEW_TYPE,), (0, 1), True),
        ("another type was reserved, and is made now", (OF_THE_NEW_TYPE, REPLACED), (), False),
    ],
)
@pytest.mark.parametrize("before", ["false", "true"])
def test_beside_machines_that_lost_their_reservation_none_is_made(
    case: str, held: tuple[StateResource, ...], stays: tuple[int, ...], is_without: bool, before: str
) -> None:
    settings = stack_settings({"unreserved": before})
    intent = Intent(config=a_config(), settings=settings, changes={}, config_text="", catalog=load_catalog())
    living = StackState(resources=(*machines((0, 1)), *held))
    decided = reserved_or_not(intent, living, stays=stays)
    assert decided.settings.unreserved is is_without, case
    assert decided.changes == {"unreserved": "true" if is_without else None}


def test_spot_machines_have_no_reservation_to_lose() -> None:
    config = a_config(capacity="spot")
    intent = Intent(config=config, settings=stack_settings({}), changes={}, config_text="", catalog=load_catalog())
    decided = reserved_or_not(intent, StackState(resources=machines((0, 1))), stays=(0, 1))
    assert decided.changes == {"unreserved": None}


def test_a_reservation_that_the_engine_still_finds_is_not_given_up() -> None:
    gone = "urn:other"
    assert left_the_state(StackState(resources=(HELD,)), (HELD.urn, gone)) == (gone,)
