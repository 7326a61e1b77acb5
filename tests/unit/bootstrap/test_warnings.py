"""What people and processes are told before a machine ends, and when; by a machine made of files."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterctl_bootstrap.node import warning
from clusterctl_bootstrap.node.watch import DRAIN_S, LEAST_S, Rule, Watch

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import born

STARTED_S = 1000
MINUTE = 60


class Ending:
    """A machine whose uptime a test moves, with one terminal."""

    def __init__(self, root: Path, *rules: Rule) -> None:
        self.root = born(root, with_systemd=True)
        self.outside = FakeOutside()
        self.rules = list(rules)
        (root / "dev/pts").mkdir(parents=True)
        (root / "dev/pts/0").touch()
        (root / "dev/pts/ptmx").touch()
        warning.open_register(root, self.outside)
        self.at(0)
        self.watch = self.started_anew()

    def started_anew(self) -> Watch:
        self.watch = Watch(self.root, self.outside, self.rules)
        return self.watch

    def at(self, second: float) -> None:
        (self.root / "proc").mkdir(exist_ok=True)
        (self.root / "proc/uptime").write_text(f"{STARTED_S + second:.2f} 9.00\n")

    def deadline(self, second: int) -> None:
        """As the guard writes it: the last stage is 90 s later."""
        (self.root / "run/clusterctl/last-stage-at").write_text(f"uptime {STARTED_S + second + 90}\n")

    def look(self, second: float) -> str:
        """What the terminal shows after a look at that second."""
        self.at(second)
        (self.root / "dev/pts/0").write_text("")
        self.watch.look()
        return (self.root / "dev/pts/0").read_text().strip("\r\n\a* ")

    @property
    def has_ended(self) -> bool:
        return ["systemctl", "poweroff", "--force"] in self.outside.commands


def test_what_everybody_may_write_to_has_room_of_its_own_and_cannot_fill_what_the_guard_writes_to(
    tmp_path: Path,
) -> None:
    (mount,) = [argv for argv in Ending(tmp_path).outside.commands if argv[0] == "mount"]
    assert mount[-1] == str(tmp_path / "run/clusterctl/warn")
    assert "size=1m" in mount[4]


@pytest.fixture
def ending(tmp_path: Path) -> Ending:
    """An hour to live."""
    made = Ending(tmp_path)
    made.deadline(60 * MINUTE)
    return made


@pytest.fixture
def caught() -> Iterator[list[int]]:
    """The SIGUSR1 that this process, which plays a training, is sent."""
    signals: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: signals.append(number))
    yield signals
    signal.signal(signal.SIGUSR1, before)


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


@pytest.mark.parametrize(("second", "said"), TIMES.values(), ids=TIMES.keys())
def test_the_terminal_says_how_much_time_is_really_left(ending: Ending, second: int, said: str) -> None:
    assert ending.look(second) == said


def test_each_warning_is_told_once_also_by_a_watch_that_started_anew(ending: Ending) -> None:
    told = []
    for second in range(40 * MINUTE, 60 * MINUTE, 30):
        told += [ending.look(second)] if ending.look(second - 1) == "" else ["twice"]
        ending.started_anew()
    assert [said for said in told if said] == [
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


def ask(ending: Ending, process_id: int | str) -> Path:
    """An entry in the register, and that process among this machine's."""
    (ending.root / f"proc/{process_id}").mkdir(exist_ok=True)
    entry = ending.root / warning.REGISTER / str(process_id)
    entry.touch()
    return entry


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
    assert warning.may_ask(owner, of_process) is is_allowed


def test_the_register_is_open_to_all_and_nobody_removes_anothers_entry(ending: Ending) -> None:
    assert (ending.root / warning.REGISTER).stat().st_mode & 0o7777 == 0o1777


WHY = "slot 0 was not seen for 30 minutes"


@pytest.fixture
def verdict() -> list[str]:
    """What the one rule says, changed by a test."""
    return []


@pytest.fixture
def ruled(tmp_path: Path, verdict: list[str]) -> Ending:
    """An hour to live, and one rule."""
    made = Ending(tmp_path, lambda: "".join(verdict))
    made.deadline(60 * MINUTE)
    return made


def test_a_rule_ends_the_machine_after_a_warning_when_nobody_saves_anything(ruled: Ending, verdict: list[str]) -> None:
    verdict.append(WHY)
    assert ruled.look(0) == f"train-2 ends in 5 minutes ({WHY}): save what is to be kept"
    ruled.look(LEAST_S - 1)
    assert not ruled.has_ended
    assert ruled.look(LEAST_S) == f"train-2 ends now: {WHY}"
    assert ruled.has_ended
    clock, at = (ruled.root / "run/clusterctl/last-stage-at").read_text().split()
    assert (clock, int(at)) == ("uptime", STARTED_S + LEAST_S + 90)


def test_last_words_are_said_before_the_end_and_leave_the_others_time_to_save(tmp_path: Path) -> None:
    ending = Ending(tmp_path, lambda: WHY)
    ending.deadline(60 * MINUTE)
    said: list[tuple[int, bool]] = []
    ending.watch.last_words = lambda wait_s: said.append((wait_s, ending.has_ended))
    ending.look(0)
    assert said == []
    ending.look(LEAST_S)
    assert said == [(DRAIN_S, False)]


def test_a_process_that_asked_holds_an_early_end_until_it_is_gone(
    ruled: Ending, verdict: list[str], caught: list[int]
) -> None:
    entry = ask(ruled, os.getpid())
    verdict.append(WHY)
    for second in (0, LEAST_S, DRAIN_S // 2):
        ruled.look(second)
        assert not ruled.has_ended
    entry.unlink()
    ruled.look(DRAIN_S // 2 + 1)
    assert (ruled.has_ended, caught) == (True, [signal.SIGUSR1])


def test_a_process_that_never_ends_does_not_hold_an_early_end_for_longer(
    ruled: Ending, verdict: list[str], caught: list[int]
) -> None:
    ask(ruled, os.getpid())
    verdict.append(WHY)
    ruled.look(0)
    ruled.look(DRAIN_S)
    assert ruled.has_ended


def test_a_rule_that_wants_no_end_any_more_gives_the_machine_back(ruled: Ending, verdict: list[str]) -> None:
    verdict.append(WHY)
    ruled.look(0)
    verdict.clear()
    assert ruled.look(5) == "train-2 goes on: it ends in 60 minutes"
    ruled.look(LEAST_S + 5)
    assert not ruled.has_ended
    verdict.append(WHY)
    assert "5 minutes" in ruled.look(30), "and is warned of anew"


def test_a_rule_that_cannot_judge_ends_nothing_and_silences_nobody(tmp_path: Path) -> None:
    def blind() -> str:
        raise OSError("no space left on device")

    ending = Ending(tmp_path, blind)
    ending.deadline(60 * MINUTE)
    assert "15 minutes" in ending.look(45 * MINUTE)
    ending.look(46 * MINUTE)
    assert not ending.has_ended


def test_a_deadline_before_a_rules_end_is_the_guards(ruled: Ending, verdict: list[str]) -> None:
    verdict.append(WHY)
    assert "(its deadline)" in ruled.look(58 * MINUTE)
    ruled.look(60 * MINUTE + 1)
    assert not ruled.has_ended


def test_where_there_is_no_systemd_the_first_process_is_ended(ruled: Ending, verdict: list[str]) -> None:
    (ruled.root / "run/systemd/system").rmdir()
    verdict.append(WHY)
    ruled.look(0)
    ruled.look(LEAST_S)
    assert ["sh", "-c", "kill 1"] in ruled.outside.commands


def test_a_hook_that_is_no_program_is_told_with_what_helps(ending: Ending) -> None:
    hook = ending.root / "etc/clusterctl/hooks/pre-terminate"
    hook.parent.mkdir(parents=True)
    hook.touch()
    said = ending.look(55 * MINUTE)
    assert "/etc/clusterctl/hooks/pre-terminate does not run: chmod +x /etc/clusterctl/hooks/pre-terminate" in said
