"""The process that keeps connections does commands whole, as clusterctl would itself."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shlex
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.ssh.broker.place import opened

from tests.integration.cli.kept_connections import PORT, WARM, await_warm, ports
from tests.integration.cli.terminal import at_a_terminal
from tests.integration.cli.waiting import comes_true

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster

CHECKOUT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "words",
    [
        ("--node", "0-2", "echo out; echo err >&2"),
        ("--gather", "echo out; echo err >&2"),
        ("--node", "1", "--env", "WHO=it's", "echo $WHO; exit 7"),
        ("--node", "0,3", "kill -9 $$"),
        ("--node", "2", "-"),
        ("--node", "9", "true"),
        ("--gather", "--json", "true"),
        ("--no-such-flag",),
        ("--help",),
    ],
)
def test_a_command_left_to_the_process_shows_what_its_own_run_would(
    steady_warm_cluster: LoopbackCluster, words: tuple[str, ...]
) -> None:
    cold, warm = (
        steady_warm_cluster.run("ssh", *flags, *words, stdin=b"echo a script of $0\n", environ=WARM)
        for flags in (("--cold",), ())
    )
    assert (warm.returncode, sorted(warm.stdout.splitlines())) == (cold.returncode, sorted(cold.stdout.splitlines()))
    assert sorted(warm.stderr.splitlines()) == sorted(cold.stderr.splitlines())


def test_a_command_left_to_the_process_loads_next_to_nothing(steady_warm_cluster: LoopbackCluster) -> None:
    argv = [sys.executable, "-X", "importtime", *steady_warm_cluster.command("ssh", "echo here")[1:]]
    done = subprocess.run(
        argv, env={**steady_warm_cluster.environ, **WARM}, stdin=subprocess.DEVNULL, capture_output=True, timeout=30
    )
    assert (done.returncode, done.stdout.count(b"here")) == (0, 4)
    loaded = {line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines()}
    assert "clusterctl.ssh.broker.client" in loaded
    assert not loaded & {"click", "dataclasses", "json", "pathlib", "typing", "clusterctl.program"}


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("{} yes | head -1; echo ${{PIPESTATUS[0]}}", "[train-0] y\n0\n"),
        ("{} echo here > /dev/full; echo $?", "clusterctl: stdout cannot be written: No space left on device\n1\n"),
        ("{} 'echo here; echo there >&2' 2>&-; echo $?", "[train-0] here\n0\n"),
    ],
)
def test_output_that_nobody_takes_ends_as_it_does_without_the_process(
    steady_warm_cluster: LoopbackCluster, line: str, output: str
) -> None:
    command = shlex.join(steady_warm_cluster.command("ssh", "--node", "all"))
    nodes = steady_warm_cluster.inventory.nodes
    steady_warm_cluster.write_inventory(replace(steady_warm_cluster.inventory, nodes=nodes[:1]))
    try:
        argv = ["bash", "-c", f"({line.format(command)}) 2>&1"]
        environ = {**steady_warm_cluster.environ, **WARM}
        done = subprocess.run(argv, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
        assert done.stdout == output
    finally:
        steady_warm_cluster.write_inventory(replace(steady_warm_cluster.inventory, nodes=nodes))


@pytest.mark.parametrize("flags", [(), ("--cold",)])
def test_a_stdout_that_does_not_wait_gets_all_of_it(
    steady_warm_cluster: LoopbackCluster, flags: tuple[str, ...]
) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    argv = steady_warm_cluster.command("ssh", *flags, "--node", "0", "head -c 1000000 /dev/zero")
    environ = {**steady_warm_cluster.environ, **WARM}
    with subprocess.Popen(argv, env=environ, stdin=subprocess.DEVNULL, stdout=writer) as client:
        os.close(writer)
        with open(reader, "rb") as stdout:
            assert len(stdout.read()) == 1_000_000
    assert client.returncode == 0


@pytest.mark.parametrize(("flags", "code"), [(("--node", "3"), 255), ((), 4)])
def test_a_command_whose_process_is_killed_says_so(
    warm_cluster: LoopbackCluster, flags: tuple[str, ...], code: int
) -> None:
    ports(warm_cluster)
    await_warm(warm_cluster)
    client = subprocess.Popen(
        warm_cluster.command("ssh", *flags, "echo $$; exec sleep 300"),
        env=warm_cluster.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert client.stdout is not None
    pid = int(client.stdout.readline().split()[-1])
    os.kill(keeping_process(warm_cluster), signal.SIGKILL)
    _, stderr = client.communicate(timeout=15)
    assert client.returncode == code
    assert stderr == "clusterctl: the process that kept the connections has ended, and with it what ran\n"
    assert comes_true(lambda: not Path(f"/proc/{pid}").exists())


def test_what_is_typed_after_a_command_is_for_the_next_reader(steady_warm_cluster: LoopbackCluster) -> None:
    master, slave = pty.openpty()
    try:
        for _ in range(2):
            argv = steady_warm_cluster.command("ssh", "--node", "0", "true")
            done = subprocess.run(
                argv, env={**steady_warm_cluster.environ, **WARM}, stdin=slave, capture_output=True, timeout=30
            )
            assert done.returncode == 0, done.stderr
        os.write(master, b"mine\n")
        assert select.select([slave], [], [], 10)[0]
        assert not comes_true(lambda: not select.select([slave], [], [], 0)[0], within_s=0.3)
        assert os.read(slave, 100) == b"mine\n"
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize("flags", [(), ("--cold",)])
def test_a_job_in_the_background_is_stopped_rather_than_given_what_is_typed_for_others(
    steady_warm_cluster: LoopbackCluster, flags: tuple[str, ...]
) -> None:
    """A little shell: it runs the command in the background, and once something was typed looks how that is."""
    shell = "import os, select, signal, sys; job = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, setpgroup=0); "
    shell += "_, how = os.waitpid(job, os.WUNTRACED); print('typed' if os.WIFSTOPPED(how) else 'lost', flush=True); "
    shell += "print(sys.stdin.readline(), flush=True); os.kill(job, signal.SIGKILL)"
    argv = steady_warm_cluster.command("ssh", *flags, "--node", "0", "echo pid $$; cat; echo gone")
    with at_a_terminal([sys.executable, "-c", shell, *argv], {**steady_warm_cluster.environ, **WARM}) as terminal:
        terminal.remote_pid()
        terminal.type(b"secret\n")
        screen = b""
        while b"lost" not in screen and screen.count(b"secret") < 2:
            assert select.select([terminal.master], [], [], 20)[0], screen
            screen += os.read(terminal.master, 4096)
        assert b"typed" in screen


def test_what_is_typed_for_a_command_comes_to_it(steady_warm_cluster: LoopbackCluster) -> None:
    argv = steady_warm_cluster.command("ssh", "--node", "0", "echo pid $$; cat; echo the end")
    with at_a_terminal(argv, {**steady_warm_cluster.environ, **WARM}) as terminal:
        terminal.remote_pid()
        terminal.type(b"mine\n\x04")
        screen = b""
        while b"the end" not in screen:
            assert select.select([terminal.master], [], [], 20)[0], screen
            screen += os.read(terminal.master, 4096)
        assert screen.count(b"mine") == 2, "what was typed, and what the node says"


def test_a_home_named_from_here_is_the_same_to_the_process(steady_warm_cluster: LoopbackCluster) -> None:
    home = steady_warm_cluster.home
    done = subprocess.run(
        steady_warm_cluster.command("ssh", PORT),
        env={**steady_warm_cluster.environ, **WARM, "CLUSTERCTL_HOME": home.name},
        cwd=home.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert sorted(done.stdout.splitlines()) == ports(steady_warm_cluster, environ=WARM)


def test_a_command_that_is_newer_than_the_process_has_another_one_made(
    warm_cluster: LoopbackCluster, tmp_path: Path
) -> None:
    """As after an update in place: the code lies in a copy, and one of its files is written anew."""
    for package in ("cli/clusterctl", "infra/clusterctl_infra", "bootstrap/clusterctl_bootstrap"):
        shutil.copytree(CHECKOUT / package, tmp_path / "code" / Path(package).name)
    environ = {"PYTHONPATH": str(tmp_path / "code")}
    first = ports(warm_cluster, environ=environ)
    await_warm(warm_cluster)
    assert ports(warm_cluster, environ=environ) == first
    assert ports(warm_cluster) != first, "another clusterctl's process is not spoken to"
    changed = tmp_path / "code" / "clusterctl" / "ssh" / "on_nodes.py"
    changed.write_text(changed.read_text().replace("[{name}]", "<{name}>"))
    socket, old = warm_cluster.home / "warm" / "socket", (warm_cluster.home / "warm" / "socket").stat().st_mtime_ns
    assert b"<train-0> here" in warm_cluster.run("ssh", "echo here", environ=environ).stdout
    # A slow command finds the old process gone by its own end, and leaves one of its own.
    assert comes_true(lambda: not socket.exists() or socket.stat().st_mtime_ns != old)


def test_only_its_owner_can_speak_to_the_process(warm_cluster: LoopbackCluster) -> None:
    ports(warm_cluster)
    await_warm(warm_cluster)
    folder = warm_cluster.home / "warm"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "socket").stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir() if path.stat().st_size] == ["stamp"]
    assert stat.S_IMODE((folder / "stamp").stat().st_mode) == 0o600


def test_the_process_ends_with_its_folder_and_shows_no_command(warm_cluster: LoopbackCluster) -> None:
    warm_cluster.run("ssh", "--env", "TOKEN=hunter2", "true")
    await_warm(warm_cluster)
    assert comes_true(lambda: shows(keeping_process(warm_cluster), b"clusterctl: keeps connections"))
    assert comes_true(lambda: not named(b"hunter2"))
    lock = (warm_cluster.home / "warm" / "lock").open("w")
    shutil.rmtree(warm_cluster.home / "warm")
    assert comes_true(lambda: can_lock(lock))
    lock.close()


def keeping_process(cluster: LoopbackCluster) -> int:
    """The process that called listen on the socket of this cluster's home (SO_PEERCRED, unix(7)).

    Until the one that keeps connections does so itself, that is the command which it was forked from.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(opened(str(cluster.home / "warm")))
        pid, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(pid)


def named(words: bytes) -> list[str]:
    """Processes with these words in their command line."""
    return [folder.name for folder in Path("/proc").glob("[0-9]*") if shows(int(folder.name), words)]


def shows(pid: int, words: bytes) -> bool:
    """Whether these words are in the process's command line."""
    try:
        return words in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def can_lock(file: object) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # type: ignore[arg-type]
    except OSError:
        return False
    return True
