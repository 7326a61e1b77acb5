"""A command on a node ends with the clusterctl that sits at a terminal: by Ctrl-C, by SIGKILL, with -t and as root."""

from __future__ import annotations

import pytest

from tests.integration.cli.conftest import LoopbackCluster
from tests.integration.cli.terminal import at_a_terminal
from tests.integration.cli.waiting import comes_true, has_ended, runs, watchers_of

CTRL_C = b"\x03"
LINE = "echo pid $$; sleep 300; sleep 301"
ALONE, WITH_TERMINAL, AS_ROOT = ("--node", "0"), ("--node", "0", "-t"), ("--node", "0", "--sudo")


@pytest.fixture
def rooted_cluster(loopback_cluster: LoopbackCluster) -> LoopbackCluster:
    """A node whose sudo asks for nothing; its users are root already, so it only has to run the command."""
    program = loopback_cluster.folder / "node-0" / "bin" / "sudo"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1 $2" = "-n --" ] && shift 2 && exec "$@"\n')
    program.chmod(0o755)
    return loopback_cluster


@pytest.mark.parametrize("stdin", [b"", b"typed\n" * 100_000])
def test_roots_command_has_its_variables_and_its_own_input(rooted_cluster: LoopbackCluster, stdin: bytes) -> None:
    value = "it's long\n" * 5_000
    done = rooted_cluster.run("ssh", *AS_ROOT, "--env", f"TOKEN={value}", 'printf "%s" "$TOKEN"; cat', stdin=stdin)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == value.encode() + stdin


def test_where_sudo_refuses_its_own_words_and_exit_code_are_told(rooted_cluster: LoopbackCluster) -> None:
    program = rooted_cluster.folder / "node-0" / "bin" / "sudo"
    program.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2; exit 1\n")
    done = rooted_cluster.run("ssh", *AS_ROOT, "--env", "TOKEN=1", "true")
    assert (done.returncode, done.stderr) == (1, b"sudo: a password is required\n")


@pytest.mark.parametrize(("flags", "exit_codes"), [(ALONE, {130}), (WITH_TERMINAL, {130, 255}), (AS_ROOT, {130})])
def test_ctrl_c_at_a_terminal_ends_the_command_on_the_node(
    rooted_cluster: LoopbackCluster, flags: tuple[str, ...], exit_codes: set[int]
) -> None:
    """With -t the terminal is the node's, and Ctrl-C ends the command there; an end by a signal is 255 to OpenSSH."""
    argv = rooted_cluster.command("ssh", *flags, "--command", LINE)
    with at_a_terminal(argv, rooted_cluster.environ) as terminal:
        pid = terminal.remote_pid()
        assert comes_true(lambda: runs(pid, "sleep"))
        terminal.type(CTRL_C)
        assert has_ended(pid)
        assert terminal.process.wait(timeout=20) in exit_codes


@pytest.mark.parametrize("flags", [ALONE, WITH_TERMINAL, AS_ROOT])
def test_a_terminal_that_is_closed_ends_the_command_on_the_node(
    rooted_cluster: LoopbackCluster, flags: tuple[str, ...]
) -> None:
    argv = rooted_cluster.command("ssh", *flags, "--command", LINE)
    with at_a_terminal(argv, rooted_cluster.environ) as terminal:
        pid = terminal.remote_pid()
        assert "-t" in flags or comes_true(lambda: watchers_of(pid) > 0), "the watcher has a channel of its own"
    assert has_ended(pid)


@pytest.mark.parametrize("flags", [ALONE, WITH_TERMINAL, AS_ROOT])
def test_a_clusterctl_that_is_killed_leaves_no_command_on_the_node(
    rooted_cluster: LoopbackCluster, flags: tuple[str, ...]
) -> None:
    argv = rooted_cluster.command("ssh", *flags, "--command", LINE)
    with at_a_terminal(argv, rooted_cluster.environ) as terminal:
        pid = terminal.remote_pid()
        assert "-t" in flags or comes_true(lambda: watchers_of(pid) > 0), "the watcher has a channel of its own"
        terminal.process.kill()  # env has become setsid, that clusterctl, and with -t that has become ssh
        assert has_ended(pid)
