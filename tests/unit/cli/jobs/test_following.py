"""How the lines that nodes print of a job are read, odd ones included."""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING, Any  # a fake in place of nodes

import pytest
from clusterctl.jobs.attached import Attached, HungUp, signals_as_exceptions
from clusterctl.jobs.following import UNHEARD_S, Item, JobFollowing, Notice, OutputLine
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.node_words import MOST_ROW_BYTES
from clusterctl.on_node.job import judge
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.keys.login_keys import LoginKeys

from tests.unit.cli.jobs.job_specs import spec

if TYPE_CHECKING:
    from clusterctl_infra.outputs import Inventory

    from tests.unit.cli.conftest import MakeInventory, Screen

OVER = {"state": "succeeded", "since_s": 5.0, "outcome": judge.outcome(judge.SUCCEEDED, "", ())}
LOST = NodeFailure("lost", "the connection was lost")


@pytest.fixture
def following(make_inventory: MakeInventory) -> JobFollowing:
    inventory = make_inventory(size=2)
    nodes = JobNodes(inventory=inventory, keys=LoginKeys(keys=(), described="none"), deadlines=Deadlines())
    return JobFollowing(nodes, inventory.nodes, job="train", attempt=1)


def hear(following: JobFollowing, slot: int, *rows: object) -> None:
    node = following._members[slot]
    following._hear(node, b"".join(json.dumps(row).encode() + b"\n" for row in rows))


def test_a_node_without_the_job_is_not_waited_for(following: JobFollowing) -> None:
    hear(following, 0, {"over": OVER})
    hear(following, 1, {"error": "no job train here"})
    assert not following._lost_on(following._members[1], LOST, 1)
    assert [item for item in following.next_items() if isinstance(item, Notice)] == [
        Notice(slot=1, text="no job train here")
    ]


@pytest.mark.parametrize(
    "torn",
    [
        [1],
        [1, 2, "no time"],
        [1, 2, "12.512.6 0 x"],
        ["x", 2, "1.0 0 y"],
        [1, 2, 3],
        [1, 2, "1e300 0 x"],
        [1, 2, "nan 0 x"],
        [1, 2, "1.0 ² x"],
    ],
)
def test_a_torn_line_hides_none_behind_it(torn: list[object], following: JobFollowing) -> None:
    hear(following, 0, torn, [1, 9, "12.5 0 loss 0.1"])
    hear(following, 0, {"over": OVER})
    hear(following, 1, {"over": OVER})
    lines: list[Item] = [item for item in following.next_items() if isinstance(item, OutputLine)]
    assert lines == [OutputLine(slot=0, at_s=12.5, rank="0", text="loss 0.1")]


@pytest.mark.parametrize(
    "odd",
    [
        {"over": {}},
        {"over": {**OVER, "state": "odd"}},
        {"over": {**OVER, "outcome": None}},
        {"over": {**OVER, "outcome": {"state": "succeeded", "exit_code": "0"}}},
        {"state": [{}]},
        {"state": {"state": "running", "since_s": -1}},
    ],
)
def test_a_node_that_tells_oddly_how_the_job_goes_does_not_end_the_command(
    odd: object, following: JobFollowing
) -> None:
    hear(following, 0, odd)
    hear(following, 1, {"over": OVER})
    notices = [item for item in following.next_items() if isinstance(item, Notice)]
    assert [(item.slot, item.text.partition(":")[0]) for item in notices] == [(0, "its answer cannot be read")]
    assert list(following.last_states) == [1]


def test_a_node_that_says_nothing_of_the_job_again_and_again_is_given_up(following: JobFollowing) -> None:
    node = following._members[0]
    hear(following, 1, {"over": OVER})
    for _ in range(3):
        assert following._lost_on(node, LOST, 1)
        hear(following, 0, {"jobs": 5}, [1, 2, "no time"])
    assert following._is_done(time.monotonic() + UNHEARD_S)
    arrived = [following._arrived.get_nowait() for _ in range(following._arrived.qsize())]
    assert len([item for item in arrived if isinstance(item, Notice)]) == 1


def test_what_is_no_line_is_neither_kept_nor_an_end(following: JobFollowing) -> None:
    node = following._members[0]
    following._hear(node, b"[" * 100_000 + b"\n[Infinity, 1, 2]\n")
    for _ in range(40):
        following._hear(node, b"x" * 65_536)
    assert len(following._rest[0]) <= MOST_ROW_BYTES
    hear(following, 0, [1, 9, "12.5 0 torn"], [1, 12, "12.5 0 loss 0.1"], {"over": OVER})
    hear(following, 1, {"over": OVER})
    lines = [item.text for item in following.next_items() if isinstance(item, OutputLine)]
    assert lines == ["loss 0.1"]


def test_a_node_that_nobody_hears_is_given_up_after_its_time(following: JobFollowing) -> None:
    assert following._lost_on(following._members[0], LOST, 2)
    now_s = time.monotonic()
    assert not following._is_done(now_s + UNHEARD_S / 2)
    assert following._lost_on(following._members[1], LOST, 2)
    assert following._is_done(now_s + UNHEARD_S + 1)


def test_what_was_ignored_from_the_start_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_as_exceptions(is_at_terminal=True):
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("number", "is_at_terminal", "raised"),
    [
        (signal.SIGHUP, True, HungUp),
        (signal.SIGHUP, False, HungUp),
        (signal.SIGTERM, False, KeyboardInterrupt),
        (signal.SIGINT, False, KeyboardInterrupt),
    ],
)
def test_a_lost_terminal_leaves_the_job_and_an_end_without_one_is_ctrl_c(
    number: signal.Signals, is_at_terminal: bool, raised: type[BaseException]
) -> None:
    before = {each: signal.getsignal(each) for each in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)}
    with pytest.raises(raised), signals_as_exceptions(is_at_terminal=is_at_terminal):
        signal.raise_signal(number)
    assert {each: signal.getsignal(each) for each in before} == before


class NodesBehindALostTerminal:
    """Nodes whose first use sends SIGHUP: the terminal is gone."""

    @property
    def inventory(self) -> Inventory:
        signal.raise_signal(signal.SIGHUP)
        raise AssertionError("the command goes on without its terminal")


def test_a_script_whose_terminal_is_gone_does_not_take_the_job_for_a_success(screen: Screen) -> None:
    """It exits with 128 plus the signal's number, as a command in a shell does."""
    nodes: Any = NodesBehindALostTerminal()
    attached = Attached(nodes, (), spec(), keep=lambda state: pytest.fail("nobody knows how it ended"))
    assert attached.watch(screen.output, as_json=False) == 129
