"""Connections kept between commands, against real sshd processes."""

from __future__ import annotations

import contextlib
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
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.ssh.many.node_task import WARM_ANSWER_S
from clusterctl.ssh.warm.place import opened

from tests.integration.cli.conftest import made_cluster
from tests.integration.cli.terminal import at_a_terminal
from tests.integration.cli.waiting import comes_true

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster

WARM = {"CLUSTERCTL_WARM": "yes"}
CHECKOUT = Path(__file__).resolve().parents[3]
PORT = "set -- $SSH_CONNECTION; echo $2"


@pytest.fixture
def warm_cluster(loopback_cluster: LoopbackCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackCluster]:
    monkeypatch.setenv("CLUSTERCTL_WARM", "yes")
    yield loopback_cluster
    end_warm(loopback_cluster)


def end_warm(cluster: LoopbackCluster) -> None:
    folder = cluster.home / "warm"
    if folder.is_dir():
        lock = (folder / "lock").open("w") if (folder / "lock").exists() else None
        (folder / "socket").unlink(missing_ok=True)
        if lock is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)  # returns when the process has ended
            lock.close()


@pytest.fixture(scope="module")
def steady_warm_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackCluster]:
    """Once for all tests that leave it as it is, its connections kept."""
    folder = tmp_path_factory.mktemp("warm")
    with made_cluster(folder / "nodes", folder / "home") as cluster:
        assert cluster.run("ssh", "true", environ=WARM).returncode == 0
        await_warm(cluster)
        yield cluster
        end_warm(cluster)


def ports(cluster: LoopbackCluster, *flags: str, environ: dict[str, str] | None = None) -> list[str]:
    """The client's port of each node's connection."""
    done = cluster.run("ssh", *flags, PORT, environ=environ)
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.decode().splitlines())


def test_the_second_command_finds_the_connections_of_the_first(warm_cluster: LoopbackCluster) -> None:
    first = ports(warm_cluster)
    await_warm(warm_cluster)
    assert ports(warm_cluster) == first
    assert not set(ports(warm_cluster, "--cold")) & set(first)
    data = os.urandom(300_000)
    assert warm_cluster.run("ssh", "--node", "2", "cat", stdin=data).stdout == data
    done = warm_cluster.run("ssh", "--node", "1", "--json", "echo out; echo err >&2; exit 7")
    assert (done.returncode, b'"stdout": "out\\n", "stderr": "err\\n"' in done.stdout) == (7, True)


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
    assert "clusterctl.ssh.warm.client" in loaded
    assert not loaded & {"click", "dataclasses", "json", "pathlib", "typing", "clusterctl.program"}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{} yes | head -1; echo ${{PIPESTATUS[0]}}", "[train-0] y\n0\n"),
        ("{} echo here > /dev/full; echo $?", "clusterctl: stdout cannot be written: No space left on device\n1\n"),
        ("{} 'echo here; echo there >&2' 2>&-; echo $?", "[train-0] here\n0\n"),
    ],
)
def test_output_that_nobody_takes_ends_as_it_does_without_the_process(
    steady_warm_cluster: LoopbackCluster, line: str, told: str
) -> None:
    command = shlex.join(steady_warm_cluster.command("ssh", "--node", "all"))
    nodes = steady_warm_cluster.inventory.nodes
    steady_warm_cluster.write_inventory(replace(steady_warm_cluster.inventory, nodes=nodes[:1]))
    try:
        argv = ["bash", "-c", f"({line.format(command)}) 2>&1"]
        environ = {**steady_warm_cluster.environ, **WARM}
        done = subprocess.run(argv, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
        assert done.stdout == told
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
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(opened(str(warm_cluster.home / "warm")))
        os.kill(
            struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0], signal.SIGKILL
        )
    _, said = client.communicate(timeout=15)
    assert client.returncode == code
    assert said == "clusterctl: the process that kept the connections has ended, and with it what ran\n"
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
        said = b""
        while b"lost" not in said and said.count(b"secret") < 2:
            assert select.select([terminal.master], [], [], 20)[0], said
            said += os.read(terminal.master, 4096)
        assert b"typed" in said


def test_what_is_typed_for_a_command_comes_to_it(steady_warm_cluster: LoopbackCluster) -> None:
    argv = steady_warm_cluster.command("ssh", "--node", "0", "echo pid $$; cat; echo the end")
    with at_a_terminal(argv, {**steady_warm_cluster.environ, **WARM}) as terminal:
        terminal.remote_pid()
        terminal.type(b"mine\n\x04")
        said = b""
        while b"the end" not in said:
            assert select.select([terminal.master], [], [], 20)[0], said
            said += os.read(terminal.master, 4096)
        assert said.count(b"mine") == 2, "what was typed, and what the node says"


def test_a_home_that_keeps_nothing_leaves_the_exit_code_as_it_is(warm_cluster: LoopbackCluster) -> None:
    (warm_cluster.home / "warm").write_text("no folder")
    done = warm_cluster.run("ssh", "--node", "0", "exit 3")
    assert (done.returncode, done.stderr) == (3, b"")


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
    changed = tmp_path / "code" / "clusterctl" / "views" / "prefixed.py"
    changed.write_text(changed.read_text().replace("[{name}]", "<{name}>"))
    assert b"<train-0> here" in warm_cluster.run("ssh", "echo here", environ=environ).stdout
    assert comes_true(lambda: not (warm_cluster.home / "warm" / "socket").exists())


def test_more_nodes_than_descriptors_are_usual_are_kept(warm_cluster: LoopbackCluster) -> None:
    """The process has numbers above 1023, and as many connections as it may."""
    nodes = [
        replace(node, slot=slot, rank=slot, name=f"train-{slot}")
        for slot, node in enumerate(warm_cluster.inventory.nodes * 8)
    ]
    warm_cluster.write_inventory(replace(warm_cluster.inventory, nodes=tuple(nodes)))
    few = "import os, resource, sys; most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]; "
    few += "resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)); null = os.open(os.devnull, os.O_RDONLY); "
    few += "[os.dup2(null, number) for number in range(3, 1060)]; "
    few += "resource.setrlimit(resource.RLIMIT_NOFILE, (1070, most)); os.execv(sys.argv[1], sys.argv[1:])"
    first = subprocess.run(
        [sys.executable, "-c", few, *warm_cluster.command("ssh", PORT)],
        env=warm_cluster.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
    )
    assert first.returncode == 0, first.stderr
    await_warm(warm_cluster)
    assert ports(warm_cluster) == sorted(first.stdout.decode().splitlines())


def test_only_its_owner_can_speak_to_the_process(warm_cluster: LoopbackCluster) -> None:
    ports(warm_cluster)
    await_warm(warm_cluster)
    folder = warm_cluster.home / "warm"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "socket").stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir() if path.stat().st_size] == []


def test_another_instance_in_a_slot_is_connected_anew(warm_cluster: LoopbackCluster) -> None:
    first = ports(warm_cluster)
    await_warm(warm_cluster)
    nodes = list(warm_cluster.inventory.nodes)
    nodes[2] = replace(nodes[2], instance_id="i-another")
    warm_cluster.write_inventory(replace(warm_cluster.inventory, nodes=tuple(nodes)))
    second = ports(warm_cluster)
    assert [a == b for a, b in zip(first, second, strict=True)] == [True, True, False, True]


def test_a_node_that_was_restarted_is_reached_at_once(warm_cluster: LoopbackCluster) -> None:
    ports(warm_cluster)
    await_warm(warm_cluster)
    session = int(warm_cluster.run("ssh", "--node", "1", "echo $PPID").stdout)
    os.kill(session, signal.SIGKILL)
    done = warm_cluster.run("ssh", "echo here")
    assert (done.returncode, done.stdout.count(b"here")) == (0, 4)


def test_a_node_that_is_slow_to_start_a_command_starts_it_once(warm_cluster: LoopbackCluster, tmp_path: Path) -> None:
    ports(warm_cluster)
    await_warm(warm_cluster)
    session = int(warm_cluster.run("ssh", "--node", "1", "echo $PPID").stdout)
    os.kill(session, signal.SIGSTOP)
    try:
        client = subprocess.Popen(
            warm_cluster.command("ssh", "--node", "1", f"echo once >> {tmp_path / 'runs'}"),
            env=warm_cluster.environ,
            stdin=subprocess.DEVNULL,
        )
        with pytest.raises(subprocess.TimeoutExpired):
            client.wait(WARM_ANSWER_S + 2)  # it has the command, so that another connection would be a second start
    finally:
        os.kill(session, signal.SIGCONT)
    assert client.wait(15) == 0
    assert (tmp_path / "runs").read_text() == "once\n"


def test_a_connection_that_breaks_once_the_node_has_the_command_is_not_tried_again(
    warm_cluster: LoopbackCluster, tmp_path: Path
) -> None:
    ports(warm_cluster)
    await_warm(warm_cluster)
    session = int(warm_cluster.run("ssh", "--node", "1", "echo $PPID").stdout)
    os.kill(session, signal.SIGSTOP)
    client = subprocess.Popen(
        warm_cluster.command("ssh", "--node", "1", f"echo again >> {tmp_path / 'runs'}"),
        env=warm_cluster.environ,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    with pytest.raises(subprocess.TimeoutExpired):
        client.wait(1.5)
    os.kill(session, signal.SIGKILL)
    _, said = client.communicate(timeout=15)
    assert (client.returncode, b"train-1 broke" in said) == (255, True)
    assert not (tmp_path / "runs").exists()


def test_ctrl_c_ends_what_runs_on_kept_connections(warm_cluster: LoopbackCluster) -> None:
    ports(warm_cluster)
    await_warm(warm_cluster)
    client = subprocess.Popen(
        warm_cluster.command("ssh", "echo $$; exec sleep 300"),
        env=warm_cluster.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert client.stdout is not None
    pids = [int(client.stdout.readline().split()[1]) for _ in range(4)]
    client.send_signal(signal.SIGINT)
    client.communicate(timeout=15)
    assert client.returncode == 130
    assert comes_true(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_a_client_that_is_killed_takes_its_commands_along(warm_cluster: LoopbackCluster) -> None:
    ports(warm_cluster)
    await_warm(warm_cluster)
    client = subprocess.Popen(
        warm_cluster.command("ssh", "--node", "3", "echo $$; exec sleep 300"),
        env=warm_cluster.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert client.stdout is not None
    pid = int(client.stdout.readline())
    client.kill()
    client.communicate(timeout=10)
    assert comes_true(lambda: not Path(f"/proc/{pid}").exists())


def test_the_process_ends_with_its_folder_and_shows_no_command(warm_cluster: LoopbackCluster) -> None:
    warm_cluster.run("ssh", "--env", "TOKEN=hunter2", "true")
    await_warm(warm_cluster)
    assert named(b"clusterctl: keeps connections")
    assert not named(b"hunter2")
    lock = (warm_cluster.home / "warm" / "lock").open("w")
    shutil.rmtree(warm_cluster.home / "warm")
    assert comes_true(lambda: can_lock(lock))
    lock.close()


def named(words: bytes) -> list[str]:
    """Processes with these words in their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if words in (folder / "cmdline").read_bytes():
                found.append(folder.name)
    return found


def await_warm(cluster: LoopbackCluster) -> None:
    assert comes_true((cluster.home / "warm" / "socket").exists)


def can_lock(file: object) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # type: ignore[arg-type]
    except OSError:
        return False
    return True
