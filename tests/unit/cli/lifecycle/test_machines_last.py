"""When so many machines are made, or end, that the engine writes its state once."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.up_runs import FEWEST, are_many, go_at_once

from tests.unit.cli.engine.state_rows import machines


@pytest.mark.parametrize(
    ("living", "nodes", "anew", "many"),
    [
        (0, FEWEST - 1, (), False),
        (0, FEWEST, (), True),
        (4, FEWEST, (), False),
        (4, FEWEST + 4, (), True),
        (FEWEST, FEWEST, (), False),
        (FEWEST, FEWEST, range(FEWEST), True),
        (FEWEST, FEWEST, range(FEWEST - 1), False),
        (FEWEST + 2, FEWEST + 1, range(FEWEST), False),
    ],
    ids=[
        "a few",
        "many",
        "a few more",
        "many more",
        "none",
        "all are made anew",
        "a few are made anew",
        "one goes meanwhile",
    ],
)
def test_many_machines_are_made_last(living: int, nodes: int, anew: Iterable[int], many: bool) -> None:
    assert are_many(StackState(resources=machines(range(living))), nodes=nodes, anew=anew) is many


@pytest.mark.parametrize(("living", "at_once"), [(0, False), (FEWEST - 1, False), (FEWEST, True)])
def test_many_machines_go_at_once(living: int, at_once: bool) -> None:
    assert go_at_once(StackState(resources=machines(range(living)))) is at_once
