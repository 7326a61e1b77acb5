"""Nodes whose boot or script failed: who is asked about their replacement, and what the engine is told."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any  # what cluster.yaml may say

import pytest
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.display import Display
from clusterctl.lifecycle.failed_nodes import REPLACE_FAILED, Asking, FailedNode, agreed_to, failed_of, replace_question
from clusterctl.lifecycle.up_runs import OPTIONS, Runs, run_up
from clusterctl.output import Output
from clusterctl.ssh.failures import NodeFailure
from clusterctl.status.node_report import FAILED, READY, NodeReport

from tests.unit.cli.conftest import MakeInventory
from tests.unit.cli.engine.state_rows import machines
from tests.unit.cli.lifecycle.recorded_runs import MEANT, RecordedEngine, ended, engine_of, no_place, runs_of
from tests.unit.cli.lifecycle.test_spend_gate import Terminal
from tests.unit.infra.plan.plan_cases import a_plan

WHY = "in scripts: setup.sh: exit 3 after 2 s"
ONE = FailedNode(slot=1, name="train-1", instance_id="i-1", why=WHY)
TWO = (ONE, FailedNode(slot=3, name="train-3", instance_id="i-3", why="in network: no address"))
AGAIN = f"clusterctl up stacks/train {REPLACE_FAILED}"
QUESTION = (
    "Replace the machine of train-1? The data on its disks is lost; the price stays $220.27/h. [y/N] "  # of a_plan()
)


def answered(
    *failed: FailedNode, typed: str | None, may_ask: bool = True, by_flag: bool = False
) -> tuple[tuple[FailedNode, ...], str]:
    """Those that are replaced, and what stood on the screen; `typed` None: nobody is there."""
    screen = io.BytesIO()
    keyboard = io.StringIO() if typed is None else Terminal(f"{typed}\n")
    output = Output(stdout=io.BytesIO(), stderr=screen, stderr_is_terminal=typed is not None, stdin=keyboard)
    asking = Asking(agrees_by_flag=by_flag, may_ask=may_ask, again=AGAIN)
    agreed = agreed_to(failed, a_plan(), asking, output, cluster="train")
    return agreed, screen.getvalue().decode()


def test_a_node_that_says_that_it_failed_is_one_of_them(make_inventory: MakeInventory) -> None:
    report = NodeReport(phase=FAILED, generation=0, failed_phase="scripts", message="setup.sh: exit 3 after 2 s")
    silent = NodeFailure("timeout", "train-2: no answer", phase="connect")
    inventory = make_inventory()
    answers: dict[int, NodeReport | NodeFailure] = {0: NodeReport(phase=READY, generation=1), 1: report, 2: silent}
    (found,) = failed_of(inventory, answers)
    assert (found.name, found.why) == ("train-1", WHY)
    assert found.instance_id == inventory.nodes[1].instance_id


@pytest.mark.parametrize(("typed", "agreed"), [("y", (ONE,)), ("", ()), ("n", ())])
def test_a_person_at_a_terminal_is_asked_with_the_reason_the_loss_and_the_price(
    typed: str, agreed: tuple[FailedNode, ...]
) -> None:
    found, shown = answered(ONE, typed=typed)
    assert found == agreed
    assert shown == f"  failed   train-1 {WHY}\n{QUESTION}"


def test_several_nodes_are_one_question() -> None:
    found, shown = answered(*TWO, typed="y")
    assert found == TWO
    assert shown.count("Replace ") == 1
    assert "Replace the 2 machines of train-1, train-3? The data on their disks is lost" in shown


@pytest.mark.parametrize(("typed", "may_ask"), [(None, True), ("y", False)], ids=["no terminal", "--yes or --json"])
def test_where_nobody_is_asked_nothing_is_replaced_and_the_commands_are_named(typed: str | None, may_ask: bool) -> None:
    found, shown = answered(ONE, typed=typed, may_ask=may_ask)
    assert found == ()
    assert "it is not replaced, because nobody was asked; " in shown
    assert f"next: {AGAIN}, or for train-1 alone: clusterctl replace --node 1 --cluster train\n" in shown


@pytest.mark.parametrize("may_ask", [True, False])
def test_the_flag_agrees_without_a_question(may_ask: bool) -> None:
    found, shown = answered(*TWO, typed=None, may_ask=may_ask, by_flag=True)
    assert found == TWO
    assert shown.endswith("  replace  train-1, train-3: the data on their disks is lost\n")


@pytest.mark.parametrize(
    ("changed", "is_warned"),
    [
        ({"capacity": "spot", "caps": {"price_usd_per_hour": 60, "runtime": "2h"}}, True),
        ({"capacity": "reservation", "reservation": "cr-0a1b2c3d4e5f67890"}, False),
    ],
    ids=["spot", "a reservation of before"],
)
def test_that_no_place_is_reserved_is_said_of_spot_machines_alone(changed: dict[str, Any], is_warned: bool) -> None:
    question = replace_question([ONE], a_plan(**changed))
    assert ("AWS may have no spot machine to put there" in question) is is_warned


def test_the_engine_replaces_them_once_however_often_it_runs(runner: Callable[..., Change]) -> None:
    """The first try replaced slot 1, and AWS had no place for slot 3 yet."""
    change = runner(no_place, lambda: ended(is_well=True), state=StackState(resources=machines(range(4))))
    states = [StackState(resources=machines(range(4))), StackState(resources=machines([0, 2, 3]))]
    run_of_failed(change, Runs(failed=("i-1", "i-3")), states)
    assert [run.options for run in runs_of(change)] == [
        ("--replace=urn:1", "--replace=urn:3"),
        ("--replace=urn:3",),
    ]


def test_of_two_runs_the_one_that_makes_machines_replaces_them(runner: Callable[..., Change]) -> None:
    state = StackState(resources=machines(range(4)))
    change = runner(lambda: ended(is_well=True), lambda: ended(is_well=True), state=state)
    run_of_failed(change, Runs(failed=("i-1",), makes_machines_last=True), [state])
    assert [run.options for run in runs_of(change)] == [OPTIONS, ("--replace=urn:1",)]


@dataclass(kw_only=True)
class StatesInTurn(RecordedEngine):
    """An engine that exports one of these after the other."""

    states: list[StackState]

    def export(self) -> StackState:
        return self.states.pop(0)


def run_of_failed(change: Change, runs: Runs, states: list[StackState]) -> None:
    """Runs the engine, whose state is one of these after the other."""
    change.engine = StatesInTurn(
        stack=change.stack, environment=change.engine.environment, states=states, ends=engine_of(change).ends
    )
    display = Display(change.output)
    run_up(change, MEANT, display=display, on_event=lambda _: None, nodes=4, runs=runs, sleep=lambda _: None)
