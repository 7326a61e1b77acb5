"""How the start barrier is asked for, and what a machine without its files answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clusterctl_bootstrap.node.__main__ import USAGE, main
from clusterctl_bootstrap.node.barrier import REFUSED
from clusterctl_bootstrap.node.later import asked_barrier

from tests.unit.bootstrap.fake_outside import FakeOutside

WRONG = {
    "no name": [],
    "no number": ["start", "--timeout", "soon"],
    "no unit": ["start", "--timeout", "90"],
    "an unknown unit": ["start", "--timeout", "1d"],
    "a name with a path": ["../start"],
    "a name that is too long": ["x" * 65],
    "another word": ["start", "now"],
    "a flag without its value": ["start", "--timeout"],
    "a flag instead of a name": ["--timeout"],
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG.keys())
def test_wrong_usage_is_told_with_the_right_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(["barrier", *arguments], tmp_path, FakeOutside()) == 2
    assert capsys.readouterr().err.endswith(f"{USAGE}\n")


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("barrier start", 600),
        ("barrier start --timeout 5s", 5),
        ("barrier start --timeout 20m", 1200),
        ("barrier start --timeout 2h", 7200),
    ],
)
def test_a_barrier_waits_for_as_long_as_it_is_told_and_else_for_ten_minutes(words: str, seconds: int) -> None:
    assert asked_barrier(words) == ("start", seconds)


@pytest.mark.parametrize("name", ["../start", "x" * 65, "a b", "größe", "-v"])
def test_a_name_that_cannot_be_one_is_told_with_what_can(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["barrier", name], tmp_path, FakeOutside()) == 2
    stderr = capsys.readouterr().err
    assert stderr.startswith(f"clusterctl-node: {name!r} is no name for a barrier: letters, digits, ")


VERBS = ("boot", "status", "apply", "barrier", "watch", "idle", "idle-report", "version")


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_and_does_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str, flag: str
) -> None:
    outside = FakeOutside()
    assert main([verb, flag], tmp_path, outside) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"usage: clusterctl-node {verb}")
    assert max(map(len, captured.out.splitlines())) <= 80
    assert (captured.err, outside.commands, list(tmp_path.iterdir())) == ("", [], [])


def test_help_without_a_verb_has_a_line_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"], tmp_path, FakeOutside()) == 0
    stdout = capsys.readouterr().out
    assert stdout.startswith("usage: clusterctl-node VERB\n")
    assert [line.split()[0] for line in stdout.splitlines() if line.startswith("  ")] == list(VERBS)


def test_a_machine_that_is_no_node_yet_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["barrier", "start", "--timeout", "1s"], tmp_path, FakeOutside()) == REFUSED
    assert "node.json" in capsys.readouterr().err


def test_a_node_without_the_secret_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "etc/clusterctl"
    folder.mkdir(parents=True)
    (folder / "node.json").write_text(json.dumps({"slot": 1}))
    assert main(["barrier", "start"], tmp_path, FakeOutside()) == REFUSED
    assert "etc/clusterctl/barrier" in capsys.readouterr().err
