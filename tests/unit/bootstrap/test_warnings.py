"""What people and processes are told before a machine ends, and when; by a machine made of files."""

from __future__ import annotations

import errno
import json
import os
import signal
from pathlib import Path

import pytest
from clusterctl_bootstrap.node import register, warning
from clusterctl_bootstrap.node.person_hook import PersonHook

from tests.unit.bootstrap.machine_that_ends import MINUTE, Ending, ask


def test_what_everybody_may_write_to_has_room_of_its_own_and_cannot_fill_what_the_guard_writes_to(
    tmp_path: Path,
) -> None:
    (mount,) = [argv for argv in Ending(tmp_path).outside.commands if argv[0] == "mount"]
    assert mount[-1] == str(tmp_path / "run/clusterctl/warn")
    assert "size=1m" in mount[4]


@pytest.fixture
def ending(tmp_path: Path) -> Ending:
    """A machine whose deadline is in an hour."""
    made = Ending(tmp_path)
    made.deadline(60 * MINUTE)
    return made


TIMES = {
    "an hour left": (0, ""),
    "just before the first": (45 * MINUTE - 1, ""),
    "fifteen minutes left": (45 * MINUTE, "train-2 ends in 15 minutes (its deadline): save what is to be kept"),
    "found late": (49 * MINUTE, "train-2 ends in 11 minutes (its deadline): save what is to be kept"),
    "five minutes left": (55 * MINUTE, "train-2 ends in 5 minutes (its deadline): save what is to be kept"),
    "found at the last moment": (
        59 * MINUTE + 30,
        "train-2 ends in 30 seconds (its deadline): save what is to be kept",
    ),
}


@pytest.mark.parametrize(("second", "text"), TIMES.values(), ids=TIMES.keys())
def test_the_terminal_says_how_much_time_is_really_left(ending: Ending, second: int, text: str) -> None:
    assert ending.look(second) == text


def test_each_warning_is_told_once_also_by_a_watch_that_started_anew(ending: Ending) -> None:
    shown = []
    for second in range(40 * MINUTE, 60 * MINUTE, 30):
        shown += [ending.look(second)] if ending.look(second - 1) == "" else ["twice"]
        ending.started_anew()
    assert [text for text in shown if text] == [
        "train-2 ends in 15 minutes (its deadline): save what is to be kept",
        "train-2 ends in 5 minutes (its deadline): save what is to be kept",
    ]


@pytest.mark.parametrize(
    ("left_s", "words"),
    [
        (7200, "2 hours"),
        (7199, "120 minutes"),
        (900, "15 minutes"),
        (119, "119 seconds"),
        (0.4, "0 seconds"),
        (-3, "0 seconds"),
    ],
)
def test_time_is_told_in_the_unit_that_people_use(left_s: float, words: str) -> None:
    assert warning.in_words(left_s) == words


def test_the_log_has_it_too_and_a_full_disk_is_no_reason_to_be_silent(ending: Ending) -> None:
    ending.look(45 * MINUTE)
    log = ending.root / "var/log/clusterctl.log"
    assert "ends in 15 minutes" in log.read_text()
    log.unlink()
    log.mkdir()  # nothing can be written there
    assert "5 minutes" in ending.look(55 * MINUTE)


def test_a_deadline_that_moves_later_is_said_and_warned_of_anew(ending: Ending) -> None:
    ending.look(55 * MINUTE)
    ending.deadline(120 * MINUTE)
    assert ending.look(56 * MINUTE) == "train-2 goes on: it ends in 64 minutes"
    assert ending.look(57 * MINUTE) == ""
    assert "15 minutes" in ending.look(105 * MINUTE)


def test_a_deadline_that_moves_earlier_is_warned_of_at_once(ending: Ending) -> None:
    assert ending.look(0) == ""
    ending.deadline(3 * MINUTE)
    assert "ends in 3 minutes" in ending.look(1)


def test_who_saves_already_is_told_again_when_the_deadline_moves_in_the_last_minutes(
    ending: Ending, caught: list[int]
) -> None:
    ask(ending, os.getpid())
    ending.look(56 * MINUTE)
    ending.deadline(59 * MINUTE)
    assert "ends in 2 minutes" in ending.look(56 * MINUTE + 30)
    assert len(caught) == 2


def test_the_same_deadline_counted_anew_is_no_other_one(ending: Ending) -> None:
    ending.look(55 * MINUTE)
    ending.deadline(60 * MINUTE + 2)
    assert ending.look(55 * MINUTE + 1) == ""


def test_a_machine_without_a_guard_goes_by_its_facts(ending: Ending) -> None:
    (ending.root / "run/clusterctl/last-stage-at").unlink()
    birth = ending.root / "var/lib/clusterctl/birth.json"
    birth.write_text(json.dumps({**json.loads(birth.read_text()), "deadline": "2020-01-01T00:00:00Z"}))
    assert "ends in 0 seconds" in ending.look(0)


def test_a_process_that_asked_is_signalled_at_each_warning_once(ending: Ending, caught: list[int]) -> None:
    ask(ending, os.getpid())
    seen = []
    for second in (44, 45, 46, 55, 56):
        ending.look(second * MINUTE)
        ending.started_anew()
        seen.append(len(caught))
    assert seen == [0, 1, 1, 2, 2]


def test_a_process_that_asks_after_a_warning_is_signalled_when_it_asks(ending: Ending, caught: list[int]) -> None:
    ending.look(50 * MINUTE)
    ask(ending, os.getpid())
    ending.look(51 * MINUTE)
    assert caught == [signal.SIGUSR1]


def test_an_entry_of_nobody_is_removed_and_signals_nobody(ending: Ending, caught: list[int]) -> None:
    gone, word = ask(ending, 2**22 + 1), ask(ending, "self")
    (ending.root / f"proc/{2**22 + 1}").rmdir()
    ending.look(0)
    assert (gone.exists(), word.exists(), caught) == (False, False, [])


OWNERS = {
    "his own": (1000, 1000, True),
    "root's for anybody": (0, 1000, True),
    "somebody else's": (1000, 1001, False),
    "root's": (1000, 0, False),
}


@pytest.mark.parametrize(("owner", "of_process", "is_allowed"), OWNERS.values(), ids=OWNERS.keys())
def test_nobody_asks_for_somebody_elses_process(owner: int, of_process: int, is_allowed: bool) -> None:
    assert register.may_ask(owner, of_process) is is_allowed


def test_the_register_is_open_to_all_and_nobody_removes_anothers_entry(ending: Ending) -> None:
    assert (ending.root / register.REGISTER).stat().st_mode & 0o7777 == 0o1777


def test_a_hook_for_which_there_is_no_memory_is_told_of_and_keeps_the_machine_from_nothing(ending: Ending) -> None:
    def no_memory(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    hook = ending.root / "etc/clusterctl/hooks/pre-terminate"
    hook.parent.mkdir(parents=True)
    hook.touch(0o755)
    ending.watch.hook = PersonHook(ending.root, "pre-terminate", no_memory)
    assert "pre-terminate does not run: [Errno 12] Cannot allocate memory" in ending.look(55 * MINUTE)
    assert not ending.watch.hook.is_running()


def test_a_hook_that_is_no_program_is_told_with_what_helps(ending: Ending) -> None:
    hook = ending.root / "etc/clusterctl/hooks/pre-terminate"
    hook.parent.mkdir(parents=True)
    hook.touch()
    text = ending.look(55 * MINUTE)
    assert "/etc/clusterctl/hooks/pre-terminate does not run: chmod +x /etc/clusterctl/hooks/pre-terminate" in text
