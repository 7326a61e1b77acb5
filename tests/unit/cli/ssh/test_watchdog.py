"""The text that a node's shell runs around a command."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable

import pytest
from clusterctl.ssh.watchdog import Told, first_input, group_in, guarded, watcher, with_input

MOST_BYTES = 1500
TextOf = Callable[..., bytes]
TOLD = Told(group=4711, holder=4712)


def test_the_line_comes_last_and_as_it_is_and_what_is_ours_takes_one_line() -> None:
    line = "cat <<END\n$x 'y' # a comment\nEND"
    for text in (
        guarded(line, environment={}, is_sudo=False, silence_s=45).decode(),
        with_input(line, environment={}, is_sudo=False, silence_s=45).decode(),
    ):
        assert text.endswith(f"; eval {shlex.quote(line)}")
        assert text.count("\n") == line.count("\n")


def test_what_every_node_gets_is_small() -> None:
    for text in (guarded, with_input):
        assert len(text("true", environment={}, is_sudo=False, silence_s=45)) < MOST_BYTES


def test_variables_are_quoted_for_the_shell() -> None:
    assert b"export A='it'\"'\"'s $HOME'; " in guarded(
        "x", environment={"A": "it's $HOME"}, is_sudo=False, silence_s=45
    )


def test_under_sudo_the_watcher_is_roots_too_and_the_group_is_the_login_shells() -> None:
    text = guarded("id -u", environment={}, is_sudo=True, silence_s=45).decode()
    words = shlex.split(text)
    assert words[:4] == ["exec", "sudo", "-n", "--"]
    assert words[-1] == "$$"
    assert words[-2].startswith("clusterctl_group=$0; ")
    assert words[-2].endswith("set -a; . /etc/clusterctl/env; set +a; fi; eval 'id -u'")
    assert "kill -s TERM" in words[-2]
    assert shlex.split(watcher(TOLD, is_sudo=True, silence_s=45).decode())[-1].startswith(
        "clusterctl_group=4711; kill -s KILL 4712 2>/dev/null; "
    )


@pytest.mark.parametrize("text_of", [guarded, with_input])
def test_under_sudo_a_variables_value_is_no_word_of_any_command(text_of: TextOf) -> None:
    environment = {"TOKEN": "it's secret\nline two"}
    assert b"secret" not in text_of("id -u", environment=environment, is_sudo=True, silence_s=45)
    sent = first_input(environment=environment, is_sudo=True)
    assert (sent.count(b"\n"), b"secret" in sent) == (1, True)
    assert first_input(environment=environment, is_sudo=False) == first_input(environment={}, is_sudo=True) == b""


def test_the_group_is_found_among_what_a_login_shell_says() -> None:
    assert group_in(b"welcome\nclusterctl-group 4711 4712\nerr") == (TOLD, b"welcome\nerr")
    assert group_in(b"welcome\nclusterctl-group 4711 47") is None


@pytest.mark.parametrize("is_sudo", [False, True])
def test_a_command_that_is_no_text_goes_as_the_bytes_that_were_typed(is_sudo: bool) -> None:
    typed = os.fsdecode(b"ls /data/\xff")
    assert b"/data/\xff" in guarded(typed, environment={"A": typed}, is_sudo=is_sudo, silence_s=45)
    assert b"/data/\xff" in with_input(typed, environment={}, is_sudo=is_sudo, silence_s=45)
