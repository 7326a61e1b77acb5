"""A command on a node whose network is cut, whose server allows one session, whose client is killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.shell_process import close_input, first_number
from tests.integration.cli.terminal import at_a_terminal
from tests.integration.cli.waiting import comes_true, has_ended, is_alive, watchers_of

CUT = """
import sys, json, pathlib, threading
from clusterctl.ssh.any_inventory import read_any_inventory
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.fanout.sinks import NodeSinks
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
SLEEPER = "trap '' TERM; echo $$; sleep 300; sleep 301"


AT_A_TERMINAL = """
import dataclasses, os, pathlib, sys
from clusterctl.home import home_directory
from clusterctl.ssh.any_inventory import read_any_inventory
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.single.login import log_in
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
        pid_file = tmp_path / "pid"
        line = SLEEPER.replace("echo $$", f"echo $$ >{pid_file}")
        argv = running(line, inventory, stdin="pipe", silence_s=3, namespace=here)
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
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
