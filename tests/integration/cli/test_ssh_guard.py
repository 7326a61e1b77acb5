"""The watcher around a command, in the shells that nodes have."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clusterctl.ssh.watchdog import BEAT, ReportedIds, first_input, group_in, guarded, watcher, with_input

from tests.integration.cli.shell_process import close_input, first_number
from tests.integration.cli.waiting import comes_true, has_ended, is_alive

SHELLS = ("bash", "dash", "zsh", "ksh", "mksh")
SILENCE_S = 1


@contextlib.contextmanager
def as_sshd_would(shell: str, text: bytes, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    """The text run by a login shell that leads its session."""
    process = subprocess.Popen(
        [shell, "-c", text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "SHELL": f"/bin/{shell}", **environ},
    )
    try:
        with process:
            yield process
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def guarded_text(line: str, *, silence_s: float = 60, is_sudo: bool = False) -> bytes:
    return guarded(line, environment={}, is_sudo=is_sudo, silence_s=silence_s)


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_the_end_of_input_ends_the_command_and_its_children(shell: str) -> None:
    with as_sshd_would(shell, guarded_text("sleep 300 & echo $!; sleep 301")) as process:
        child = first_number(process)
        close_input(process)
        assert process.wait(timeout=30) == -signal.SIGTERM
        assert comes_true(lambda: not is_alive(child))


@pytest.mark.parametrize("text_of", [guarded, with_input])
def test_a_search_for_a_word_of_the_command_finds_what_it_started_and_nothing_of_ours(
    shell: str, text_of: Callable[..., bytes]
) -> None:
    # Among the session's processes alone: what runs these tests has the same words in its own files' names.
    # By its path: ksh has a sleep of its own, which is no process with a name.
    begun = "/bin/sleep 555 & until pgrep -s $$ -x sleep >/dev/null; do sleep 0.1; done"
    line = f"{begun}; pgrep -c -s $$ -f 'sleep 555'; pkill -s $$ -f 'sleep 555'; echo went on"
    with as_sshd_would(shell, text_of(line, environment={}, is_sudo=False, silence_s=60)) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == [b"1\n", b"went on\n"]


@pytest.mark.parametrize("text", ["printf '%s|' \"a  b\" 'it''s'", "echo '$HOME' \\\\ né \ttab # said\n#\necho two"])
def test_a_shell_runs_what_was_typed_and_not_what_it_was_escaped_to(shell: str, text: str) -> None:
    plain = subprocess.run([shell, "-c", text], stdout=subprocess.PIPE, check=True, timeout=30)
    with as_sshd_would(shell, guarded_text(text)) as process:
        assert process.stdout is not None
        assert process.stdout.read() == plain.stdout


@pytest.mark.parametrize("text_of", [guarded, with_input])
def test_a_line_that_begins_with_a_dash_is_a_command_that_is_not_there(
    shell: str, text_of: Callable[..., bytes]
) -> None:
    text = text_of("-x || echo went on", environment={}, is_sudo=False, silence_s=60)
    with as_sshd_would(shell, text) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"went on\n"


def test_the_end_of_input_ends_what_has_a_group_of_its_own(shell: str) -> None:
    with as_sshd_would(shell, guarded_text("timeout 300 sh -c 'echo $$; exec sleep 301'")) as process:
        child = first_number(process)
        close_input(process)
        assert process.wait(timeout=30) == -signal.SIGTERM
        assert has_ended(child)


def test_a_command_with_input_begins_at_once_and_its_output_ends_with_it(shell: str) -> None:
    text = with_input("cat; exit 7", environment={}, is_sudo=False, silence_s=60)
    with as_sshd_would(shell, text) as process:
        output, _ = process.communicate(b"typed", timeout=10)
        assert (process.returncode, output) == (7, b"typed")


def test_a_command_that_ignores_sigterm_is_killed(shell: str) -> None:
    with as_sshd_would(shell, guarded_text("trap '' TERM; echo $$; sleep 300; sleep 301")) as process:
        first_number(process)
        close_input(process)
        assert process.wait(timeout=30) == -signal.SIGKILL


def test_silence_ends_the_command_and_beats_keep_it(shell: str) -> None:
    with as_sshd_would(shell, guarded_text("echo $$; exec sleep 300", silence_s=SILENCE_S)) as process:
        first_number(process)
        assert process.stdin is not None
        ends_at = time.monotonic() + 2.5 * SILENCE_S
        while time.monotonic() < ends_at:
            process.stdin.write(BEAT)
            process.stdin.flush()
            time.sleep(SILENCE_S / 4)  # the beats' own interval, not a wait
        assert process.poll() is None
        assert process.wait(timeout=30) == -signal.SIGTERM


def test_the_commands_own_end_is_everything_and_leaves_what_it_left(shell: str) -> None:
    with as_sshd_would(shell, guarded_text("sleep 300 >/dev/null 2>&1 & echo $!; exit 7")) as process:
        left = first_number(process)
        assert process.wait(timeout=30) == 7
        close_input(process)
        assert not comes_true(lambda: not is_alive(left), within_s=2.5)
        os.kill(left, signal.SIGKILL)


def test_a_command_with_input_is_ended_by_a_watcher_beside_it(shell: str) -> None:
    text = with_input("echo $$; cat >/dev/null; exec sleep 300", environment={}, is_sudo=False, silence_s=60)
    with as_sshd_would(shell, text) as process:
        first_number(process)
        ids = reported_ids(process)
        assert ids.group == process.pid
        with as_sshd_would(shell, watcher(ids, is_sudo=False, silence_s=60)) as beside:
            assert has_ended(ids.holder), "two watchers are one too many"
            close_input(beside)
            assert process.wait(timeout=30) == -signal.SIGTERM


def test_a_command_with_input_that_no_watcher_comes_to_is_ended_after_the_silence(shell: str) -> None:
    line = "trap '' TERM; echo $$; sleep 300; sleep 301"
    with as_sshd_would(shell, with_input(line, environment={}, is_sudo=False, silence_s=SILENCE_S)) as process:
        first_number(process)
        assert process.wait(timeout=30) == -signal.SIGKILL


def test_a_command_that_waits_for_all_its_children_does_not_wait_for_the_watcher(shell: str) -> None:
    with as_sshd_would(shell, guarded_text("sleep 0.1 & wait; exit 7")) as process:
        assert process.wait(timeout=10) == 7


def test_who_holds_the_watchers_place_ends_with_the_command_and_is_no_child_of_it(shell: str) -> None:
    with as_sshd_would(shell, with_input("wait; exit 7", environment={}, is_sudo=False, silence_s=60)) as process:
        assert process.wait(timeout=30) == 7
        assert has_ended(reported_ids(process).holder)


def test_under_sudo_the_group_is_the_login_shells(shell: str, tmp_path: Path) -> None:
    stand_in = tmp_path / "sudo"
    stand_in.write_text('#!/bin/sh\n[ "$1 $2" = "-n --" ] && shift 2 && exec env AS_ROOT=yes "$@"\n')
    stand_in.chmod(0o755)
    text = guarded_text('trap "" TERM; echo $clusterctl_group; echo $AS_ROOT; sleep 300; sleep 301', is_sudo=True)
    with as_sshd_would(shell, text, PATH=f"{tmp_path}:{os.environ['PATH']}") as process:
        assert first_number(process) == process.pid
        assert process.stdout is not None
        assert process.stdout.readline() == b"yes\n"
        close_input(process)
        assert process.wait(timeout=30) == -signal.SIGKILL


@pytest.mark.parametrize(("text_of", "own_input"), [(guarded, b""), (with_input, b"typed")])
def test_under_sudo_variables_come_by_the_input_and_the_commands_own_input_is_whole(
    shell: str, tmp_path: Path, text_of: Callable[..., bytes], own_input: bytes
) -> None:
    stand_in = tmp_path / "sudo"
    stand_in.write_text('#!/bin/sh\n[ "$1 $2" = "-n --" ] && shift 2 && exec env -i PATH="$PATH" "$@"\n')
    stand_in.chmod(0o755)
    environment = {"TOKEN": 'it\'s \\n "$HOME" `id`\nline two\n', "EMPTY": ""}
    text = text_of('printf "%s" "<$TOKEN$EMPTY>"; cat; exit 7', environment=environment, is_sudo=True, silence_s=60)
    with as_sshd_would(shell, text, PATH=f"{tmp_path}:{os.environ['PATH']}") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(first_input(environment=environment, is_sudo=True) + own_input)
        process.stdin.flush()
        if own_input:
            close_input(process)
        output = (
            process.stdout.read()
        )  # with the input still open: its end would end a command that has none of its own
        assert process.wait(timeout=10) == 7
    assert output == f"<{environment['TOKEN']}>".encode() + own_input


@pytest.mark.parametrize("came", [b"\n", b"echo this is data\n", b"export A='half of", b""])
def test_under_sudo_nothing_runs_where_the_variables_have_not_come(shell: str, tmp_path: Path, came: bytes) -> None:
    stand_in = tmp_path / "sudo"
    stand_in.write_text('#!/bin/sh\nshift 2; exec "$@"\n')
    stand_in.chmod(0o755)
    text = with_input("echo ran", environment={"A": "1"}, is_sudo=True, silence_s=60)
    with as_sshd_would(shell, text, PATH=f"{tmp_path}:{os.environ['PATH']}") as process:
        output, complaint = process.communicate(came, timeout=10)
        assert (process.returncode, output) == (255, b"")
        assert b"clusterctl: the values of --env did not come: " in complaint


def reported_ids(process: subprocess.Popen[bytes]) -> ReportedIds:
    assert process.stderr is not None
    found = group_in(process.stderr.readline())
    assert found is not None
    return found[0]
