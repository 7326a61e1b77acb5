"""A person's packages and scripts: when they run, what is kept of them, and what is said when one fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from clusterctl_bootstrap.cloud_config import SCRIPTS_FOLDER
from clusterctl_bootstrap.node.boot import boot
from clusterctl_bootstrap.node.hooks import TIMEOUT_S, longest_s
from clusterctl_bootstrap.node_plan import ScriptPlan

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import born, status


def script(name: str, when: str = "once", at: str = "before-ready") -> ScriptPlan:
    return ScriptPlan(name=name, content="#!/bin/sh\n", when=when, at=at)


def ran(outside: FakeOutside) -> list[str]:
    """The hooks in the order in which they ran."""
    logs = [argv[3] for argv in outside.commands if argv[:2] == ["sh", "-c"] and argv[3].endswith(".log")]
    return [Path(log).stem for log in logs]


def test_hooks_run_in_their_order_around_the_mounts(tmp_path: Path) -> None:
    late, first = script("late", at="after-ready"), script("first", at="before-mounts")
    root = born(tmp_path, with_systemd=True, packages=("htop",), scripts=(late, script("a"), script("b"), first))
    outside = FakeOutside()
    assert boot(root, outside) == 0
    assert ran(outside) == ["packages", "first", "a", "b", "late"]
    assert status(root)["phase"] == "ready"


def test_once_is_not_run_again_and_boot_is(tmp_path: Path) -> None:
    root = born(tmp_path, with_systemd=True, packages=("htop",), scripts=(script("a"), script("b", when="boot")))
    boot(root, FakeOutside())
    second = FakeOutside()
    assert boot(root, second) == 0
    assert ran(second) == ["b"]


def failing(name: str, output: str = "fetching\nno such mirror\n") -> FakeOutside:
    """A machine on which that hook prints `output` and exits with 3."""
    outside = FakeOutside()

    def answer(argv: list[str]) -> tuple[int, str] | None:
        if len(argv) < 4 or not argv[3].endswith(f"/{name}.log"):
            return None
        Path(argv[3]).parent.mkdir(parents=True, exist_ok=True)
        Path(argv[3]).write_text(output)
        return 3, ""

    outside.answer = answer
    return outside


def test_a_script_that_fails_fails_the_node_by_name_with_its_last_lines(tmp_path: Path) -> None:
    root = born(tmp_path, with_systemd=True, scripts=(script("a"), script("b"), script("c")))
    outside = failing("b")
    assert boot(root, outside) == 1
    error = status(root)["error"]
    assert error["phase"] == "scripts"
    assert error["message"].startswith("b: exit 3 after 0 s: ")
    assert error["message"].endswith("/var/log/clusterctl/b.log: no such mirror")
    assert any(row.endswith("b: fetching") for row in error["log"])
    assert ran(outside) == ["a", "b"]


def test_a_script_that_fails_without_a_word_is_said_to(tmp_path: Path) -> None:
    root = born(tmp_path, with_systemd=True, scripts=(script("a"),))
    assert boot(root, failing("a", output="")) == 1
    assert status(root)["error"]["message"] == "a: exit 3 after 0 s: it said nothing"


def test_what_failed_once_runs_again_at_the_next_boot(tmp_path: Path) -> None:
    root = born(tmp_path, with_systemd=True, scripts=(script("a"), script("b")))
    boot(root, failing("b"))
    second = FakeOutside()
    assert boot(root, second) == 0
    assert ran(second) == ["b"]


def test_a_failure_after_ready_leaves_the_node_ready_and_is_said(tmp_path: Path) -> None:
    root = born(tmp_path, with_systemd=True, scripts=(script("late", at="after-ready"),))
    assert boot(root, failing("late")) == 1
    seen = status(root)
    assert (seen["phase"], seen["error"]["phase"]) == ("ready", "scripts after ready")
    assert seen["error"]["message"].startswith("late: exit 3")


WAITING = "waiting for scripts from clusterctl up"
LARGE = replace(script("setup.sh"), content="#!/bin/sh\necho ü\n", is_delivered=True)


def place_of(root: Path) -> Path:
    """Where `clusterctl up` puts the script: the node has to look there, and to compute the same hash."""
    return root / SCRIPTS_FOLDER.lstrip("/") / LARGE.name


def deliver(root: Path, content: str = LARGE.content) -> None:
    place_of(root).parent.mkdir(exist_ok=True)
    place_of(root).write_text(content)


def phases(root: Path) -> list[str]:
    return [row["phase"] for row in status(root)["history"]]


class Delivering(FakeOutside):
    """A machine to which somebody brings what it waits for, while it waits."""

    def __init__(self, root: Path, *contents: str) -> None:
        super().__init__()
        self.root = root
        self.contents = list(contents)
        self.seen: list[str] = []

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.seen.append(status(self.root)["phase"])
        if self.contents:
            deliver(self.root, self.contents.pop(0))


def test_a_node_waits_for_a_script_that_user_data_has_no_room_for(tmp_path: Path) -> None:
    root = born(tmp_path, with_systemd=True, scripts=(script("first", at="before-mounts"), LARGE))
    outside = Delivering(root, "another text", LARGE.content)
    assert boot(root, outside) == 0
    assert outside.seen == [WAITING, WAITING]
    assert ran(outside) == ["first", "setup.sh"]
    assert phases(root).index(WAITING) < phases(root).index("scripts before mounts")


def test_what_came_once_is_not_waited_for_again(tmp_path: Path) -> None:
    root = born(tmp_path, with_systemd=True, scripts=(replace(LARGE, when="boot"),))
    deliver(root)
    for _ in range(2):
        outside = FakeOutside()
        assert boot(root, outside) == 0
        assert ran(outside) == ["setup.sh"]
        assert WAITING not in phases(root)


def test_a_script_that_never_comes_fails_the_node_with_who_brings_it(tmp_path: Path) -> None:
    root = born(tmp_path, with_systemd=True, scripts=(LARGE,))
    outside = FakeOutside()
    assert boot(root, outside) == 1
    error = status(root)["error"]
    assert (error["phase"], error["message"]) == (WAITING, "after 1800 s: setup.sh has not come: clusterctl up")
    assert ran(outside) == []


def test_packages_that_cannot_be_had_fail_their_phase(tmp_path: Path) -> None:
    root = born(tmp_path, with_systemd=True, packages=("htop",))
    assert boot(root, failing("packages")) == 1
    assert status(root)["error"]["phase"] == "packages"


def test_a_process_machine_runs_no_hooks(tmp_path: Path) -> None:
    outside = FakeOutside()
    assert boot(born(tmp_path, packages=("htop",), scripts=(script("a"), LARGE)), outside) == 0
    assert outside.commands == []


@pytest.mark.parametrize("name", ["a", "packages"])
def test_every_hook_has_an_end(tmp_path: Path, name: str) -> None:
    outside = FakeOutside()
    boot(born(tmp_path, with_systemd=True, packages=("htop",), scripts=(script("a"),)), outside)
    (argv,) = (argv for argv in outside.commands if len(argv) > 4 and argv[3].endswith(f"/{name}.log"))
    assert argv[4] == "1800"


@pytest.mark.parametrize(
    ("known", "hooks"),
    [
        ({}, 0),
        ({"packages": ["htop"], "scripts": None}, 1),
        ({"scripts": [["a", "once", "before-ready"], ["b", "boot", "before-mounts"]]}, 1),
        ({"packages": ["htop"], "scripts": [["a", "once", "before-mounts"], ["b", "boot", "before-mounts"]]}, 3),
        ({"scripts": [["a", "once", "before-ready", "0123"], ["b", "boot", "after-ready", "4567"]]}, 1),
    ],
)
def test_neighbours_wait_for_all_that_slot_0_may_run_before_its_mounts(known: dict[str, object], hooks: int) -> None:
    assert longest_s(known) == hooks * TIMEOUT_S
