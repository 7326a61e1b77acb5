"""Bad nodes among 64: the others' results are there, the bad ones are named, and in bounded time."""

from __future__ import annotations

import contextlib
import getpass
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import paramiko
import pytest

from tests.integration.cli import bad_servers
from tests.integration.cli.bad_servers import Behaviour
from tests.integration.cli.conftest import SSHD, make_key, wait_for_port
from tests.integration.free_port import free_port

GOOD = 57
MOST_ADDRESSES = 16
"""One sshd listens on no more (MAX_LISTEN_SOCKS in its source)."""
BAD_ADDRESSES = tuple(f"127.0.18.{number}" for number in range(201, 208))
CONNECT_S, COMMAND_S = 8.0, 4.0


@dataclass(frozen=True, kw_only=True)
class Lab:
    """57 addresses with a real sshd behind, and seven that are up to the test."""

    folder: Path
    inventory: Path
    port: int

    def run(
        self, line: str, *flags: str
    ) -> tuple[dict[str, dict[str, object]], subprocess.CompletedProcess[bytes], float]:
        """Every node's line of JSON, how it ended, and the seconds it took."""
        argv = [sys.executable, "-m", "clusterctl", "ssh", "--inventory", str(self.inventory), "--json", *flags]
        began_at = time.monotonic()
        done = subprocess.run([*argv, line], stdin=subprocess.DEVNULL, capture_output=True, timeout=40)
        took_s = time.monotonic() - began_at
        return {row["node"]: row for row in map(json.loads, done.stdout.splitlines())}, done, took_s

    def bad(self, number: int = 0) -> tuple[str, int]:
        """An address and port that are up to the test: of the node `lab-57` or a later one."""
        return BAD_ADDRESSES[number], self.port

    @property
    def host_key(self) -> Path:
        return self.folder / "host"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if SSHD is None:
        pytest.fail("needs sshd: apt-get install openssh-server")
    folder = tmp_path_factory.mktemp("lab")
    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("login", "host", "other"):
        make_key(folder / name)
    addresses = [f"127.0.18.{number + 1}" for number in range(GOOD)]
    key = (folder / "host.pub").read_text().strip()
    all_addresses = [*addresses, *BAD_ADDRESSES]
    rows = [{"name": f"lab-{n}", "address": each, "host_key": key} for n, each in enumerate(all_addresses)]
    port = free_port(all_addresses)
    ssh = {"user": getpass.getuser(), "port": port, "key_file": str(folder / "login")}
    (folder / "lab.json").write_text(json.dumps({"ssh": ssh, "nodes": rows}))
    with contextlib.ExitStack() as servers:
        for first in range(0, GOOD, MOST_ADDRESSES):
            servers.enter_context(sshd(folder, addresses[first : first + MOST_ADDRESSES], port))
        yield Lab(folder=folder, inventory=folder / "lab.json", port=port)


@pytest.fixture(scope="module")
def healthy_s(lab: Lab) -> float:
    """What the good ones take, process and all: the promise is the deadline and a second on top of that."""
    _, done, took_s = lab.run("echo fine", "--node", f"0-{GOOD - 1}")
    assert done.returncode == 0
    return took_s


@contextlib.contextmanager
def sshd(folder: Path, addresses: list[str], port: int) -> Iterator[None]:
    config = folder / f"{addresses[0]}.conf"
    config.write_text(
        "".join(f"ListenAddress {address}\n" for address in addresses)
        + f"Port {port}\nHostKey {folder / 'host'}\nAuthorizedKeysFile {folder / 'login.pub'}\nPidFile none\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nMaxStartups 300\n"
        f"SetEnv HOME={folder}\n"
    )
    assert SSHD is not None
    with subprocess.Popen([SSHD, "-D", "-e", "-f", str(config)], stderr=subprocess.DEVNULL) as server:
        try:
            wait_for_port(addresses[-1], port)
            yield
        finally:
            server.terminate()


Server = Callable[[Lab, tuple[str, int]], contextlib.AbstractContextManager[None]]


def behaves(
    then: Callable[[paramiko.Transport, paramiko.Channel], None] = bad_servers.nothing,
    *,
    key: str = "host",
    lets_in: bool = True,
    opens_channels: bool = True,
) -> Server:
    """A server with one fault."""

    def start(lab: Lab, place: tuple[str, int]) -> contextlib.AbstractContextManager[None]:
        behaviour = Behaviour(then)
        behaviour.lets_in, behaviour.opens_channels = lets_in, opens_channels
        return bad_servers.ssh_server(place, lab.folder / key, behaviour)

    return start


Fault = tuple[Server, str, str]

BEFORE_THE_COMMAND: dict[str, Fault] = {
    "nobody listens": (lambda lab, place: contextlib.nullcontext(), "refused", "connect"),
    "the SYN is dropped": (lambda lab, place: bad_servers.dropped_syn(place), "timeout", "connect"),
    "TCP but no word": (lambda lab, place: bad_servers.silent(place), "timeout", "greeting"),
    "a greeting, then silence": (
        lambda lab, place: bad_servers.greeting_then_silence(place),
        "timeout",
        "key exchange",
    ),
    "another host key": (behaves(key="other"), "host-key", "key exchange"),
    "the login is refused": (behaves(lets_in=False), "auth", "login"),
    "no channel is opened": (behaves(opens_channels=False), "session", "session"),
}
DURING_THE_COMMAND: dict[str, Fault] = {
    "the command hangs": (behaves(), "timeout", "command"),
    "the node freezes half way": (behaves(bad_servers.freezes), "timeout", "command"),
    "the node reboots half way": (behaves(bad_servers.reboots), "lost", "command"),
}


@pytest.mark.alone
@pytest.mark.parametrize(
    ("faults", "deadline_s", "named"),
    [
        (BEFORE_THE_COMMAND, CONNECT_S, [f"lab-{number} not reached: " for number in range(GOOD, GOOD + 7)]),
        (DURING_THE_COMMAND, CONNECT_S + COMMAND_S, [f"lab-[{GOOD}-{GOOD + 1}] ended ", f"lab-{GOOD + 2} lost: "]),
    ],
    ids=["before the command", "during the command"],
)
def test_bad_nodes_of_64_are_named_and_cost_the_others_nothing(
    lab: Lab, healthy_s: float, faults: dict[str, Fault], deadline_s: float, named: list[str]
) -> None:
    """Each fault has a node of its own, all at once: a run is as long as the slowest of them."""
    with contextlib.ExitStack() as servers:
        for number, (server, _, _) in enumerate(faults.values()):
            servers.enter_context(server(lab, lab.bad(number)))
        flags = ("--connect-timeout", f"{CONNECT_S}s", "--timeout", f"{COMMAND_S}s")
        nodes = ("--node", f"0-{GOOD + len(faults) - 1}")
        rows, done, took_s = lab.run("echo fine", *flags, *nodes)
    bad = {fault: rows.pop(f"lab-{GOOD + number}") for number, fault in enumerate(faults)}
    assert {(row["stdout"], row["exit_code"]) for row in rows.values()} == {("fine\n", 0)}
    assert len(rows) == GOOD
    assert {fault: (row["error_class"], row["error_phase"], row["exit_code"]) for fault, row in bad.items()} == {
        fault: (kind, phase, None) for fault, (_, kind, phase) in faults.items()
    }
    assert f"{len(faults)} of {GOOD + len(faults)} failed:".encode() in done.stderr
    assert [words for words in named if words.encode() not in done.stderr] == []
    assert done.returncode == 4
    assert took_s <= deadline_s + 1 + 2 * healthy_s


@pytest.mark.parametrize(
    ("sent", "shown"),
    [(b"no newline", "no newline"), (b"bad \xff utf-8\n", "bad � utf-8\n"), (b"", "")],
)
def test_odd_output_of_one_node_comes_as_it_is(lab: Lab, sent: bytes, shown: str) -> None:
    with bad_servers.ssh_server(lab.bad(), lab.host_key, Behaviour(bad_servers.says(sent))):
        rows, done, _ = lab.run("echo fine", "--node", f"{GOOD - 1}-{GOOD}")
    assert rows[f"lab-{GOOD}"]["stdout"] == shown
    assert rows[f"lab-{GOOD - 1}"]["stdout"] == "fine\n"
    assert done.returncode == 0


def test_a_line_of_100_mb_is_bounded_and_holds_nobody_up(lab: Lab) -> None:
    line = 'case "${SSH_CONNECTION% *}" in *.18.5) head -c 100000000 /dev/zero | tr "\\0" x;; *) echo fine;; esac'
    rows, done, _ = lab.run(line, "--node", f"0-{GOOD - 1}", "--timeout", "30s")
    assert len(rows) == GOOD
    assert rows["lab-4"]["truncated"] is True
    assert rows["lab-4"]["stdout"] == "x" * (16 * 1024 * 1024)
    assert done.returncode == 0
