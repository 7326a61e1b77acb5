"""After an older state was put back: which numbers of nodes are believed, and how the state gets a higher one."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from clusterctl.engine.environment import EngineEnvironment
from clusterctl.engine.run_file import read_record
from clusterctl.engine.stack import Stack
from clusterctl.engine.stack_config import config_values, read_config
from clusterctl.engine.state import StackState
from clusterctl.home import Home
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.newer_membership import (
    MOST_AHEAD,
    NewerMembership,
    go_above,
    implausible,
    newer_membership,
)
from clusterctl.lifecycle.readiness import NodeWatch
from clusterctl.output import Output
from clusterctl.status.node_report import READY, NodeReport

from tests.unit.cli.engine.fake_engine import FakeEngine

KNOWN = 2


def refusing(slot: int, number: int, why: str | None = None) -> NodeWatch:
    """A ready node that did not take membership 2, since it has another one."""
    refused = why or f"generation: {KNOWN} was offered, {number} is here"
    report = NodeReport(phase=READY, generation=number)
    return NodeWatch(slot=slot, name=f"train-{slot}", phase=READY, report=report, undelivered=refused, is_final=True)


TAKEN = replace(refusing(9, KNOWN), undelivered=None)


@pytest.mark.parametrize(
    ("numbers", "highest"),
    [
        ((3,), 3),
        ((3, 7, 5), 7),
        ((KNOWN + MOST_AHEAD,), KNOWN + MOST_AHEAD),
        ((KNOWN + MOST_AHEAD + 1,), None),
        ((3, KNOWN + MOST_AHEAD + 1, 2**62), 3),
        ((KNOWN,), KNOWN),
        ((1,), None),
        ((), None),
    ],
)
def test_the_highest_plausible_number_is_the_one_to_go_above(numbers: tuple[int, ...], highest: int | None) -> None:
    watches = [TAKEN, *(refusing(slot, number) for slot, number in enumerate(numbers))]
    found = newer_membership(watches, known=KNOWN)
    assert (None if found is None else found.highest) == highest


def test_nodes_with_another_membership_are_named_with_its_number() -> None:
    found = newer_membership([refusing(0, 3), refusing(1, 3), refusing(2, KNOWN)], known=KNOWN)
    assert found is not None
    assert found.message == (
        "train-[0-1]: membership 3 is there, the state knows 2: an older state was put back; "
        "train-2: another membership 2 is there than the state's. All nodes get 4"
    )


def test_a_node_is_not_believed_a_number_that_is_too_far_ahead() -> None:
    assert (
        implausible(refusing(0, 5000), known=KNOWN) == "it reports membership 5000, which cannot be: the state knows 2"
    )
    assert implausible(refusing(0, KNOWN + MOST_AHEAD), known=KNOWN) is None


@pytest.mark.parametrize(
    "watch",
    [
        TAKEN,
        refusing(0, 5, "sudo: a password is required"),
        replace(refusing(0, 5), gone="terminated"),
        replace(refusing(0, 5), report=NodeReport(phase="failed", generation=5)),
        replace(refusing(0, 5), report=None),
    ],
)
def test_a_node_that_did_not_refuse_the_number_changes_none(watch: NodeWatch) -> None:
    assert newer_membership([watch], known=KNOWN) is None
    far = None if watch.report is None else replace(watch.report, generation=KNOWN + MOST_AHEAD + 1)
    assert implausible(replace(watch, report=far), known=KNOWN) is None


class KilledEngine(FakeEngine):
    """An engine that is stopped before its run begins."""

    def export(self) -> StackState:
        raise KeyboardInterrupt


def test_a_kill_while_the_number_is_raised_is_found_by_the_next_run(tmp_path: Path) -> None:
    """The change before has succeeded and has no record any more, so this run needs one of its own."""
    stack = Stack(directory=tmp_path, project="train", name="dev", is_rehearsal_project=True)
    environment = EngineEnvironment(
        env={}, rehearsal=True, executable="pulumi", config_file=stack.config_file, run_token="1"
    )
    stack.config_file.write_text("config:\n  clusterctl:until: '2026-11-21T22:00:00Z'\n")
    change = Change(
        verb="up",
        engine=KilledEngine(stack=stack, environment=environment),
        home=Home(path=tmp_path / "home"),
        output=Output(stdout=io.BytesIO(), stderr=io.BytesIO()),
        cluster="train@rehearsal",
        region="us-west-2",
        environ={},
        previous=None,
    )
    change.finish()
    with pytest.raises(KeyboardInterrupt):
        go_above(change, NewerMembership(highest=3, message="train-0: membership 3 is there"), shown="train")
    record = read_record(change.home.run_file(change.cluster))
    assert record is not None
    assert record.tokens == ("1",)
    written = config_values(read_config(stack.config_file))
    assert (written["generation-floor"], written["until"]) == ("4", "2026-11-21T22:00:00Z")
