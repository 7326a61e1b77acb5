"""A command on a node ends with the clusterctl that sits at a terminal: by Ctrl-C, by SIGKILL, with -t and as root."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.integration.cli.conftest import LoopbackCluster
from tests.integration.cli.waiting import comes_true, has_ended, is_alive, watchers_of

CTRL_C = b"\x03"
LINE = "echo pid $$; sleep 300; sleep 301"
ALONE, WITH_TERMINAL, AS_ROOT = ("--node", "0"), ("--node", "0", "-t"), ("--node", "0", "--sudo")


@dataclass
class Terminal:
    """A person's terminal with a clusterctl in its foreground."""

    master: int
    process: subprocess.Popen[bytes]

    def type(self, keys: bytes) -> None:
        """As if typed."""
        os.write(self.master, keys)

    def remote_pid(self) -> int:
        """What the command on the node calls itself, once it has said so on the screen."""
        said, ends_at = b"", time.monotonic() + 30
        while time.monotonic() < ends_at:
            if select.select([self.master], [], [], 0.2)[0]:
                said += os.read(self.master, 4096)
            if b"pid " in said and b"\n" in said.partition(b"pid ")[2]:
                return int(said.partition(b"pid ")[2].split()[0])
        raise AssertionError(f"no pid on the screen: {said!r}")


@contextlib.contextmanager
def at_a_terminal(cluster: LoopbackCluster, *arguments: str) -> Iterator[Terminal]:
    """clusterctl in a session of its own, all three streams on its controlling terminal."""
    master, slave = pty.openpty()
    # Whoever runs the tests may be deaf to a hang-up (nohup), and children inherit that.
    argv = ["env", "--default-signal=HUP", "setsid", "--ctty", *cluster.command(*arguments)]
    process = subprocess.Popen(argv, env=cluster.environ, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        os.close(master)
        process.wait(timeout=20)


@pytest.fixture
def rooted_cluster(loopback_cluster: LoopbackCluster) -> LoopbackCluster:
    """A node whose sudo asks for nothing; its users are root already, so it only has to do as it is told."""
    program = loopback_cluster.folder / "node-0" / "bin" / "sudo"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1 $2" = "-n --" ] && shift 2 && exec "$@"\n')
    program.chmod(0o755)
    return loopback_cluster


@pytest.mark.parametrize(("flags", "exit_codes"), [(ALONE, {130}), (WITH_TERMINAL, {130, 255}), (AS_ROOT, {130})])
def test_ctrl_c_at_a_terminal_ends_the_command_on_the_node(
    rooted_cluster: LoopbackCluster, flags: tuple[str, ...], exit_codes: set[int]
) -> None:
    """With -t the terminal is the node's: what Ctrl-C did there is the command's own end, a signal 255 to OpenSSH."""
    with at_a_terminal(rooted_cluster, "ssh", *flags, "--command", LINE) as terminal:
        pid = terminal.remote_pid()
        assert is_alive(pid)
        terminal.type(CTRL_C)
        assert has_ended(pid)
        assert terminal.process.wait(timeout=20) in exit_codes


@pytest.mark.parametrize("flags", [ALONE, WITH_TERMINAL, AS_ROOT])
def test_a_terminal_that_is_closed_ends_the_command_on_the_node(
    rooted_cluster: LoopbackCluster, flags: tuple[str, ...]
) -> None:
    with at_a_terminal(rooted_cluster, "ssh", *flags, "--command", LINE) as terminal:
        pid = terminal.remote_pid()
        assert "-t" in flags or comes_true(lambda: watchers_of(pid) > 0), "the watcher has a channel of its own"
    assert has_ended(pid)


@pytest.mark.parametrize("flags", [ALONE, WITH_TERMINAL, AS_ROOT])
def test_a_clusterctl_that_is_killed_leaves_no_command_on_the_node(
    rooted_cluster: LoopbackCluster, flags: tuple[str, ...]
) -> None:
    with at_a_terminal(rooted_cluster, "ssh", *flags, "--command", LINE) as terminal:
        pid = terminal.remote_pid()
        assert "-t" in flags or comes_true(lambda: watchers_of(pid) > 0), "the watcher has a channel of its own"
        terminal.process.kill()  # env has become setsid, that clusterctl, and with -t that has become ssh
        assert has_ended(pid)
