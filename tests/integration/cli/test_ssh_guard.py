"""The watcher around a command, in the shells that nodes have; and across a network that is cut."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clusterctl.ssh.guard import BEAT, Told, first_input, group_in, guarded, watcher, with_input

from tests.integration.cli.terminal import at_a_terminal
from tests.integration.cli.waiting import comes_true, has_ended, is_alive, watchers_of

SHELLS = [shell for shell in ("bash", "dash", "zsh", "ksh", "mksh") if shutil.which(shell)]
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


def test_the_end_of_input_ends_what_has_a_group_of_its_own(shell: str) -> None:
    with as_sshd_would(shell, guarded_text("timeout 300 sh -c 'echo $$; exec sleep 301'")) as process:
        child = first_number(process)
        close_input(process)
        assert process.wait(timeout=30) == -signal.SIGTERM
        assert has_ended(child)


def test_a_command_with_input_begins_at_once_and_its_output_ends_with_it(shell: str) -> None:
    text = with_input("cat; exit 7", environment={}, is_sudo=False, silence_s=60)
    with as_sshd_would(shell, text) as process:
        said, _ = process.communicate(b"typed", timeout=10)
        assert (process.returncode, said) == (7, b"typed")


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
        told = told_by(process)
        assert told.group == process.pid
        with as_sshd_would(shell, watcher(told, is_sudo=False, silence_s=60)) as beside:
            assert has_ended(told.holder), "two watchers are one too many"
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
        assert has_ended(told_by(process).holder)


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


@pytest.mark.parametrize("text_of", [guarded, with_input])
def test_under_sudo_variables_come_by_the_input_and_the_commands_own_input_is_whole(
    shell: str, tmp_path: Path, text_of: Callable[..., bytes]
) -> None:
    stand_in = tmp_path / "sudo"
    stand_in.write_text('#!/bin/sh\n[ "$1 $2" = "-n --" ] && shift 2 && exec env -i PATH="$PATH" "$@"\n')
    stand_in.chmod(0o755)
    environment = {"TOKEN": 'it\'s \\n "$HOME" `id`\nline two\n', "EMPTY": ""}
    text = text_of('printf "%s" "<$TOKEN$EMPTY>"; cat; exit 7', environment=environment, is_sudo=True, silence_s=60)
    with as_sshd_would(shell, text, PATH=f"{tmp_path}:{os.environ['PATH']}") as process:
        typed = first_input(environment=environment, is_sudo=True)
        said, _ = process.communicate(typed + (b"typed" if text_of is with_input else BEAT), timeout=10)
    assert process.returncode == 7
    assert said == f"<{environment['TOKEN']}>".encode() + (b"typed" if text_of is with_input else b"")


CUT = """
import sys, json, pathlib, threading
from clusterctl.ssh.any_inventory import read_any_inventory
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.many.fan_out import run_on_nodes
from clusterctl.ssh.many.sinks import NodeSinks
from clusterctl.ssh.keys.login_keys import LoginKeys, key_in_file
inventory = read_any_inventory(pathlib.Path(sys.argv[1]), ssh_config=pathlib.Path("/nonexistent"))
keys = LoginKeys(keys=(key_in_file(pathlib.Path(sys.argv[2])),), described="the test's key")
show = lambda node, chunk: (sys.stdout.write(chunk.decode()), sys.stdout.flush())
stdin = None if sys.argv[3] == "none" else sys.stdin.buffer
results = run_on_nodes(
    inventory, inventory.nodes, sys.argv[4], keys=keys, stdin=stdin,
    deadlines=Deadlines(silence_s=float(sys.argv[5])), sinks=NodeSinks(stdout=show, stderr=show),
)
failure = results[0].failure
print(*["ended", results[0].exit_code] if failure is None else [failure.kind, failure.phase], flush=True)
"""
SLEEPER = "trap '' TERM; echo $$ | tee pid; sleep 300; sleep 301"


AT_A_TERMINAL = """
import dataclasses, os, pathlib, sys
from clusterctl.home import home_directory
from clusterctl.ssh.any_inventory import read_any_inventory
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.one.login import log_in
inventory = read_any_inventory(pathlib.Path(sys.argv[1]), ssh_config=pathlib.Path("/nonexistent"))
inventory = dataclasses.replace(inventory, ssh=dataclasses.replace(inventory.ssh, key_file=sys.argv[2]))
log_in(
    inventory, inventory.nodes, sys.argv[3], home=home_directory(os.environ),
    is_terminal_wanted=True, deadlines=Deadlines(silence_s=3),
)
"""


@pytest.fixture
def cable(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Two network namespaces with a cable between them: 10.97.0.1 in the first, 10.97.0.2 in the second."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.fail("needs root and iproute2 for network namespaces")
    here, there = f"ccl-cut-a-{os.getpid()}", f"ccl-cut-b-{os.getpid()}"
    try:
        for name in (here, there):
            ip("netns", "add", name)
        ip("-n", here, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", there)
        for name, address in ((here, "10.97.0.1/24"), (there, "10.97.0.2/24")):
            ip("-n", name, "addr", "add", address, "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")
        yield here, there
    finally:
        for name in (here, there):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=10)


@pytest.mark.parametrize("stdin", ["none", "pipe"])
def test_a_cut_network_ends_the_command_on_both_sides(cable: tuple[str, str], tmp_path: Path, stdin: str) -> None:
    here, there = cable
    with sshd_in(there, tmp_path) as inventory:
        argv = running(SLEEPER, inventory, stdin=stdin, silence_s=3, namespace=here)
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            pid = first_number(client)
            if stdin == "pipe":
                assert comes_true(lambda: watchers_of(pid) > 0), "the watcher has a channel of its own"
            ip("-n", here, "link", "set", "cable", "down")
            assert client.stdout is not None
            assert client.stdout.readline() == b"lost command\n"
            assert comes_true(lambda: not is_alive(pid))
            close_input(client)


def test_a_network_that_is_cut_before_the_watcher_is_there_ends_the_command_too(
    cable: tuple[str, str], tmp_path: Path
) -> None:
    """The login shell cuts it, before it runs the command."""
    here, there = cable
    (tmp_path / ".bashrc").write_text(f"cd {tmp_path}; ip link set cable down\n")
    with sshd_in(there, tmp_path) as inventory:
        argv = running(SLEEPER, inventory, stdin="pipe", silence_s=3, namespace=here)
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            pid_file = tmp_path / "pid"
            assert comes_true(lambda: pid_file.exists() and pid_file.read_text() != "")
            pid = int(pid_file.read_text())
            assert watchers_of(pid) == 0
            assert client.stdout is not None
            assert client.stdout.readline() == b"lost command\n"
            assert has_ended(pid)
            close_input(client)


@pytest.mark.parametrize("line", ["cat; sleep 8; echo it ran on", "cat; echo it ran on"])
def test_a_command_with_input_runs_where_no_session_is_left_for_its_watcher(
    cable: tuple[str, str], tmp_path: Path, line: str
) -> None:
    here, there = cable
    with sshd_in(there, tmp_path, "MaxSessions 1\n") as inventory:
        argv = running(line, inventory, stdin="pipe", silence_s=6, namespace=here)
        done = subprocess.run(argv, input=b"read\n", stdout=subprocess.PIPE, timeout=30)
    assert done.stdout == b"read\nit ran on\nended 0\n"


def test_where_no_session_is_left_for_the_watcher_it_comes_by_another_connection(
    cable: tuple[str, str], tmp_path: Path
) -> None:
    here, there = cable
    with sshd_in(there, tmp_path, "MaxSessions 1\n") as inventory:
        argv = running(SLEEPER, inventory, stdin="pipe", silence_s=60, namespace=here)
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            pid = first_number(client)
            assert comes_true(lambda: watchers_of(pid) > 0)
            client.kill()
            assert comes_true(lambda: not is_alive(pid))


@pytest.mark.parametrize(
    "line", ["echo pid $$; sleep 300; sleep 301", "exec sh -c 'echo pid $$; sleep 300; sleep 301'"]
)
def test_a_cut_network_ends_a_command_at_a_terminal_on_both_sides(
    cable: tuple[str, str], tmp_path: Path, own_home: Path, line: str
) -> None:
    here, there = cable
    with sshd_in(there, tmp_path) as inventory:
        argv = [sys.executable, "-c", AT_A_TERMINAL, str(inventory), str(tmp_path / "login"), line]
        with at_a_terminal(["ip", "netns", "exec", here, *argv], {**os.environ}) as terminal:
            pid = terminal.remote_pid()
            assert comes_true(is_guard_holding), "the second connection has found it"
            ip("-n", here, "link", "set", "cable", "down")
            assert terminal.process.wait(timeout=20) == 255
            assert has_ended(pid)


def running(line: str, inventory: Path, *, stdin: str, silence_s: float, namespace: str) -> list[str]:
    """The argv of a `CUT` in that namespace; its login key lies beside the inventory."""
    words = [str(inventory), str(inventory.with_name("login")), stdin, line, str(silence_s)]
    return ["ip", "netns", "exec", namespace, sys.executable, "-c", textwrap.dedent(CUT), *words]


def is_guard_holding() -> bool:
    """The guard of a terminal has found its session: it sleeps two seconds at a time from then on."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == b"sleep\x002\x00":
                parent = path.with_name("stat").read_text().rpartition(")")[2].split()[1]
                if b"clusterctl-terminal-[" in Path(f"/proc/{parent}/cmdline").read_bytes():
                    return True
    return False


@contextlib.contextmanager
def sshd_in(namespace: str, folder: Path, settings: str = "") -> Iterator[Path]:
    """A real sshd there; yields an inventory of it."""
    for name in ("login", "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True, timeout=10)
    Path("/run/sshd").mkdir(exist_ok=True)
    (folder / "sshd.conf").write_text(
        f"ListenAddress 10.97.0.2\nPort 22\nHostKey {folder / 'host'}\nAuthorizedKeysFile {folder / 'login.pub'}\n"
        "PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
        f"SetEnv HOME={folder}\n{settings}"
    )
    key = (folder / "host.pub").read_text().strip()
    inventory = folder / "cut.json"
    inventory.write_text(
        f'{{"ssh": {{"user": "root"}}, "nodes": [{{"name": "cut-0", "address": "10.97.0.2", "host_key": "{key}"}}]}}'
    )
    argv = ["ip", "netns", "exec", namespace, "/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "sshd.conf")]
    with subprocess.Popen(argv, stderr=subprocess.PIPE) as server:
        try:
            assert server.stderr is not None
            assert b"listening" in server.stderr.readline()
            yield inventory
        finally:
            server.terminate()


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, timeout=10)


def told_by(process: subprocess.Popen[bytes]) -> Told:
    assert process.stderr is not None
    found = group_in(process.stderr.readline())
    assert found is not None
    return found[0]


def first_number(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def close_input(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
