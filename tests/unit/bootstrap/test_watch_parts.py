"""A part of the watch that fails stops no other part, and `status` says which it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any  # an error of any kind

import pytest
from clusterctl_bootstrap.node import status
from clusterctl_bootstrap.node.boundary import Boundary
from clusterctl_bootstrap.node.later import UNIT
from clusterctl_bootstrap.node.register import REGISTER
from clusterctl_bootstrap.node.spot_market import Heard

from tests.unit.bootstrap.machine_that_ends import MINUTE, Ending
from tests.unit.bootstrap.node_examples import born

FAILURES = [RecursionError("too deep"), ZeroDivisionError(), OSError("no space left"), MemoryError(), OverflowError()]


def failing(error: BaseException) -> Callable[[], Any]:
    def fail() -> str:
        raise error

    return fail


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_a_rule_that_fails_keeps_no_other_rule_from_ending_the_machine(tmp_path: Path, error: Exception) -> None:
    ending = Ending(tmp_path, failing(error), lambda: "idle")
    ending.deadline(60 * MINUTE)
    assert ending.look(0) == "train-2 ends in 5 minutes (idle): save what is to be kept"
    ending.look(10)
    assert ending.has_ended


class BrokenHook:
    """A hook that cannot even be looked at."""

    def start(self, limit_s: int, **more: str) -> None:
        raise RecursionError

    def is_running(self) -> bool:
        return False


def test_a_hook_that_fails_keeps_nobody_from_being_warned_nor_the_machine_from_ending(tmp_path: Path) -> None:
    ending = Ending(tmp_path, lambda: "idle")
    ending.deadline(60 * MINUTE)
    ending.watch.hook = BrokenHook()
    assert "5 minutes" in ending.look(0)
    ending.look(10)
    assert ending.has_ended


def test_a_register_that_is_gone_keeps_nobody_from_being_warned(tmp_path: Path) -> None:
    ending = Ending(tmp_path, lambda: "idle")
    ending.deadline(60 * MINUTE)
    (ending.root / REGISTER).rmdir()
    assert "5 minutes" in ending.look(0)
    ending.look(10)
    assert ending.has_ended


def test_a_deadline_that_cannot_be_read_stops_no_rule(tmp_path: Path) -> None:
    ending = Ending(tmp_path, lambda: "idle")
    (ending.root / "run/clusterctl/last-stage-at").write_text("nonsense\n")
    assert "5 minutes" in ending.look(0)


def test_where_no_end_is_known_nothing_ends(tmp_path: Path) -> None:
    ending = Ending(tmp_path)
    (ending.root / "run/clusterctl/last-stage-at").write_text("nonsense\n")
    assert ending.look(0) == ""
    assert not ending.has_ended


ODD_NOTICES = {
    "a number for an instant": Heard(ends=5, ends_s=1.0, at="x"),  # type: ignore[arg-type]  # as a file may say it
    "a text for seconds": Heard(ends="2027-01-15T08:02:00Z", ends_s="soon"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("odd", ODD_NOTICES.values(), ids=ODD_NOTICES.keys())
def test_an_odd_notice_does_not_hide_the_deadline(tmp_path: Path, odd: Heard) -> None:
    ending = Ending(tmp_path)
    ending.deadline(60 * MINUTE)
    ending.heard = odd
    assert "(its deadline)" in ending.look(50 * MINUTE)


def test_a_machine_that_aws_did_not_take_is_warned_of_its_deadline(tmp_path: Path) -> None:
    ending = Ending(tmp_path)
    ending.deadline(60 * MINUTE)
    ending.heard = Heard(ends="2027-01-15T08:02:00Z", ends_s=1000.0 + 60)
    assert "AWS takes" in ending.look(0)
    assert "goes on" in ending.look(10 * MINUTE)
    assert "15 minutes (its deadline)" in ending.look(45 * MINUTE)


def test_what_fails_is_in_the_status_until_it_works_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = born(tmp_path)
    status.begin(root)
    boundary = Boundary(root)

    def look(step: Callable[[], Any], gives: str = "otherwise") -> object:
        assert boundary.run("idle", step, "otherwise") == gives
        boundary.note()
        return json.loads(status.line(root)).get("watch")

    assert look(lambda: "well", "well") is None
    assert look(failing(OSError("full\x1b[2J"))) == {"idle": "OSError: full?[2J"}
    assert look(failing(OSError("full\x1b[2J"))) == {"idle": "OSError: full?[2J"}
    assert capsys.readouterr().out.count("the watch: idle: ") == 1, "the journal is told once"
    status.begin(root)
    assert look(failing(OSError("full"))) == {"idle": "OSError: full"}, "a boot that begins forgets nothing"
    boundary = Boundary(root)
    assert look(lambda: "well", "well") is None, "what an earlier watch noted goes, too"


def test_a_status_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    root = born(tmp_path)
    (root / "etc/clusterctl/status.json").mkdir(parents=True)
    boundary = Boundary(root)
    boundary.run("idle", failing(OSError()))
    boundary.note()


def test_systemd_starts_the_watch_again_however_often_it_dies() -> None:
    text = UNIT % ("x", "watch")
    assert "Restart=always\n" in text
    assert "StartLimitIntervalSec=0\n" in text.partition("[Service]")[0]


def test_a_watch_that_is_told_to_end_ends(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Boundary(born(tmp_path)).run("idle", failing(KeyboardInterrupt()))
