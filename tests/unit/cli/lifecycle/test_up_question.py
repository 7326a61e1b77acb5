"""What a person who is asked by `up` on AWS reads of the machines that are there."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any  # AWS's answers

import pytest
from clusterctl.lifecycle.intent import plan_of, read_intent
from clusterctl.lifecycle.up import question_of

from tests.unit.cli.cloud.fake_answers import clients_of
from tests.unit.cli.lifecycle.held_cluster import SLOTS, Clock, alive, held
from tests.unit.cli.lifecycle.intent_cases import BORN


@pytest.mark.parametrize(
    ("died", "asked"),
    [
        ([], "Change 4 → 4 nodes?"),
        ([1, 3], "Change 2 → 4 nodes?"),
        (SLOTS, "Create 4 × p5.48xlarge?"),
    ],
)
def test_machines_that_died_are_not_among_those_that_change(tmp_path: Path, died: list[int], asked: str) -> None:
    found = held(tmp_path, Clock(BORN), repair_s=0)
    rows = alive()
    for slot in died:
        machine(rows, slot)["State"] = {"Name": "terminated"}
    meant = read_intent(found.change.stack, "", nodes=None)
    planned = plan_of(meant, found.state, now=BORN)
    question = question_of(clients_of(rows), planned, found.state, anew=0, now=BORN + timedelta(minutes=1))
    assert question.endswith(asked)


def machine(rows: dict[tuple[str, str, str], list[dict[str, Any]]], slot: int) -> dict[str, Any]:
    """What AWS says of the machine in this slot."""
    ((described,),) = rows.values()
    found: dict[str, Any] = described["Instances"][slot]
    return found
