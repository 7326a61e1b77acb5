"""The text that a node's shell runs around a command."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable

import pytest
from clusterctl.ssh.watchdog import (
    LONGEST_ESCAPED,
    ReportedIds,
    evaluated,
    first_input,
    group_in,
    guarded,
    watcher,
    with_input,
)

MOST_BYTES = 3000
TextOf = Callable[..., bytes]
REPORTED = ReportedIds(group=4711, holder=4712)


def test_ps_shows_the_words_of_a_command_and_under_sudo_not_its_environment() -> None:
    line = guarded("train --token abc", environment={"TOKEN": "hidden"}, is_sudo=True, silence_s=30).decode()
    assert "train --token abc" in line.replace("\\", "")
    assert "hidden" not in line.replace("\\", "")


def parts_of(text: str) -> list[str]:
    """What the shell evaluates: ours, then the person's line."""
    words = shlex.split(text)
    assert words[::2] == ["eval", "eval"]
    return [words[1].removesuffix(";"), words[3]]


def test_the_line_comes_last_and_as_it_is_and_what_is_ours_takes_one_line() -> None:
    line = "cat <<END\n$x 'y' # a comment\nEND"
    for text in (
        guarded(line, environment={}, is_sudo=False, silence_s=45).decode(),
        with_input(line, environment={}, is_sudo=False, silence_s=45).decode(),
    ):
        assert parts_of(text)[1] == line
        assert text.count("\n") == line.count("\n")


@pytest.mark.parametrize("is_sudo", [False, True])
def test_a_search_through_argvs_finds_no_word_of_the_command_or_of_what_is_ours(is_sudo: bool) -> None:
    line = "pkill -f 'sleep 555'"
    for text in (
        guarded(line, environment={}, is_sudo=is_sudo, silence_s=45),
        with_input(line, environment={}, is_sudo=is_sudo, silence_s=45),
        watcher(REPORTED, is_sudo=is_sudo, silence_s=45),
    ):
        for word in (b"sleep", b"555", b"pkill", b"read", b"trap"):
            assert word not in text


@pytest.mark.parametrize("text", ["ls -l 'a  b'", "a\nb\n", "né\t\x01\udcff", "\\", "$HOME `id` !! ~ {a,b} *"])
def test_what_is_escaped_is_the_same_word_to_a_shell(text: str) -> None:
    assert shlex.split(evaluated(text)) == ["eval", text]


def test_a_program_is_not_made_twice_as_long() -> None:
    program = "x" * (LONGEST_ESCAPED + 1)
    assert evaluated(program) == f"eval {program}"


def test_what_every_node_gets_is_small() -> None:
    for text in (guarded, with_input):
        assert len(text("true", environment={}, is_sudo=False, silence_s=45)) < MOST_BYTES


def test_variables_are_quoted_for_the_shell() -> None:
    text = guarded("x", environment={"A": "it's $HOME"}, is_sudo=False, silence_s=45).decode()
    assert parts_of(text)[0].endswith("export A='it'\"'\"'s $HOME'; ")


def test_under_sudo_the_watcher_is_roots_too_and_the_group_is_the_login_shells() -> None:
    text = guarded("id -u", environment={}, is_sudo=True, silence_s=45).decode()
    words = shlex.split(text)
    assert words[:4] == ["exec", "sudo", "-n", "--"]
    assert words[-1] == "$$"
    ours, line = parts_of(words[-2])
    assert ours.startswith("clusterctl_group=$0; ")
    assert ours.endswith("set -a; . /etc/clusterctl/env; set +a; fi; ")
    assert "kill -s TERM" in ours
    assert line == "id -u"
    (beside,) = shlex.split(shlex.split(watcher(REPORTED, is_sudo=True, silence_s=45).decode())[-1])[1:]
    assert beside.startswith("clusterctl_group=4711; kill -s KILL 4712 2>/dev/null; ")


@pytest.mark.parametrize("text_of", [guarded, with_input])
def test_under_sudo_a_variables_value_is_no_word_of_any_command(text_of: TextOf) -> None:
    environment = {"TOKEN": "it's secret\nline two"}
    text = text_of("id -u", environment=environment, is_sudo=True, silence_s=45).decode()
    assert "secret" not in "".join(parts_of(shlex.split(text)[-2]))
    sent = first_input(environment=environment, is_sudo=True)
    assert (sent.count(b"\n"), b"secret" in sent) == (1, True)
    assert first_input(environment=environment, is_sudo=False) == first_input(environment={}, is_sudo=True) == b""


def test_the_group_is_found_among_what_a_login_shell_says() -> None:
    assert group_in(b"welcome\nclusterctl-group 4711 4712\nerr") == (REPORTED, b"welcome\nerr")
    assert group_in(b"welcome\nclusterctl-group 4711 47") is None


@pytest.mark.parametrize("is_sudo", [False, True])
def test_a_command_that_is_no_text_goes_as_the_bytes_that_were_typed(is_sudo: bool) -> None:
    typed = os.fsdecode(b"ls /data/\xff")
    for text in (
        guarded(typed, environment={}, is_sudo=is_sudo, silence_s=45),
        with_input(typed, environment={}, is_sudo=is_sudo, silence_s=45),
    ):
        words = shlex.split(os.fsdecode(text))
        assert parts_of(words[-2] if is_sudo else os.fsdecode(text))[1] == typed
