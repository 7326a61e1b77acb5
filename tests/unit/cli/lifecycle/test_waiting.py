"""Which nodes are waited for, for how long, and what is shown meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.lifecycle.display import Display, shortened
from clusterctl.lifecycle.readiness import HOOK_PHASES, OTHERS_S, NodeWatch, Patience, ReadyWatch, waiting_for
from clusterctl.lifecycle.script_delivery import AWAITING
from clusterctl.status.node_report import READY, NodeReport
from clusterctl_bootstrap.node import boot

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Screen

SILENT = NodeWatch(slot=1, name="train-1", trouble="10.0.8.1:22: connection refused")
IN_SCRIPTS = NodeWatch(slot=1, name="train-1", phase="scripts", report=NodeReport(phase="scripts", generation=0))


class Clock:
    """A clock that each sleep moves on by one second, however long it should be."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += 1.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watch(tmp_path: Path, clock: Clock) -> Iterator[ReadyWatch]:
    none = tmp_path / "no inventory"
    found = ReadyWatch(none, changed=lambda _: None, monotonic=clock.monotonic, sleep=clock.sleep)
    yield found
    found.stop()


def put(found: ReadyWatch, *nodes: NodeWatch) -> None:
    """Starts the watch of each node, and gives it what was seen of the node."""
    for node in nodes:
        found.start(node.slot, node.name)
        found.note(node)


@pytest.mark.parametrize(
    ("nodes", "waited_s"),
    [
        ([SILENT], 120),
        ([IN_SCRIPTS], 120 + 300),
        ([replace(IN_SCRIPTS, trouble="connection lost")], 120),
        ([replace(IN_SCRIPTS, phase="mounts")], 120),
    ],
)
def test_the_time_of_scripts_counts_while_a_node_says_that_it_runs_them(
    watch: ReadyWatch, clock: Clock, nodes: list[NodeWatch], waited_s: float
) -> None:
    put(watch, *nodes)
    watch.wait(Patience(usual_s=120, hooks_s=300), on_tick=lambda: None)
    assert clock.now_s - 100 == pytest.approx(waited_s, abs=2)


def test_who_is_not_waited_for_is_given_a_moment_alone(watch: ReadyWatch, clock: Clock) -> None:
    put(watch, replace(IN_SCRIPTS, slot=0, is_final=True), SILENT)
    watch.wait(Patience(usual_s=600), on_tick=lambda: None, slots=frozenset({0}))
    assert clock.now_s - 100 == pytest.approx(OTHERS_S, abs=2)


def test_each_node_that_is_waited_for_is_named_with_why_and_for_how_long(watch: ReadyWatch, clock: Clock) -> None:
    put(watch, SILENT, replace(IN_SCRIPTS, slot=2, name="train-2"), replace(SILENT, slot=3, is_final=True))
    clock.now_s += 80
    assert watch.waiting() == ["train-1: no answer for 1 m 20 s", "train-2: scripts for 1 m 20 s"]
    assert watch.waiting(frozenset({2})) == ["train-2: scripts for 1 m 20 s"]


def test_a_node_that_answered_and_does_not_any_more_is_silent() -> None:
    lost = replace(IN_SCRIPTS, trouble="connection lost")
    assert waiting_for(lost, 300, 20) == "train-1: no answer for 20 s"
    ready = replace(lost, phase=READY, trouble=None)
    assert waiting_for(ready, 7, 0) == "train-1: ready, being told the list of nodes"
    awaiting = replace(lost, phase=AWAITING, trouble=None)
    assert waiting_for(awaiting, 7, 0) == "train-1: waiting for its scripts for 7 s"


def test_without_a_terminal_a_line_now_and_then_says_who_is_waited_for(screen: Screen) -> None:
    display = Display(screen.output)
    display.waiting(["train-1: no answer for 0 s"], every_s=0.0)
    assert screen.err == ""
    display.waiting(["train-1: no answer for 10 s"], every_s=0.0)
    assert screen.err == " waiting for train-1: no answer for 10 s\n"


def test_of_many_nodes_the_first_are_named() -> None:
    assert shortened(["a", "b", "c", "d", "e"], most=3) == "a, b, c and 2 more"
    assert shortened(["a"], most=3) == "a"


def test_the_phases_of_packages_and_scripts_are_called_as_the_node_calls_them() -> None:
    source = Path(boot.__file__).read_text()
    assert all(f'("{phase}", ' in source for phase in (*HOOK_PHASES, AWAITING))
