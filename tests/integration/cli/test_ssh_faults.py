"""One bad node of 64: the others' results are there, the bad one is named, and in bounded time."""

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

import pytest

from tests.integration.cli import bad_servers
from tests.integration.cli.bad_servers import Behaviour
from tests.integration.cli.conftest import SSHD, free_port, make_key, wait_for_port

GOOD = 63
MOST_ADDRESSES = 16
"""One sshd listens on no more (MAX_LISTEN_SOCKS in its source)."""
BAD_ADDRESS = "127.0.18.200"
CONNECT_S, COMMAND_S = 8.0, 4.0


@dataclass(frozen=True, kw_only=True)
class Lab:
    """63 addresses with a real sshd behind, and one that is up to the test."""

    folder: Path
    inventory: Path
    bad: tuple[str, int]
    """The address and port that are up to the test."""

    def run(
        self, line: str, *flags: str
    ) -> tuple[dict[str, dict[str, object]], subprocess.CompletedProcess[bytes], float]:
        """Every node's line of JSON, how it ended, and the seconds it took."""
        argv = [sys.executable, "-m", "clusterctl", "ssh", "--inventory", str(self.inventory), "--json", *flags]
        began_at = time.monotonic()
        done = subprocess.run([*argv, line], stdin=subprocess.DEVNULL, capture_output=True, timeout=40)
        took_s = time.monotonic() - began_at
        return {row["node"]: row for row in map(json.loads, done.stdout.splitlines())}, done, took_s

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
    all_addresses = [*addresses, BAD_ADDRESS]
    rows = [{"name": f"lab-{n}", "address": each, "host_key": key} for n, each in enumerate(all_addresses)]
    port = free_port(all_addresses)
    ssh = {"user": getpass.getuser(), "port": port, "key_file": str(folder / "login")}
    (folder / "lab.json").write_text(json.dumps({"ssh": ssh, "nodes": rows}))
    with contextlib.ExitStack() as servers:
        for first in range(0, GOOD, MOST_ADDRESSES):
            servers.enter_context(sshd(folder, addresses[first : first + MOST_ADDRESSES], port))
        yield Lab(folder=folder, inventory=folder / "lab.json", bad=(BAD_ADDRESS, port))


@pytest.fixture(scope="module")
def healthy_s(lab: Lab) -> float:
    """What the 63 take by themselves, process and all: the promise is the deadline and a second on top of that."""
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


def refuses_login(lab: Lab) -> contextlib.AbstractContextManager[None]:
    behaviour = Behaviour(bad_servers.nothing)
    behaviour.lets_in = False
    return bad_servers.ssh_server(lab.bad, lab.host_key, behaviour)


def refuses_channels(lab: Lab) -> contextlib.AbstractContextManager[None]:
    behaviour = Behaviour(bad_servers.nothing)
    behaviour.opens_channels = False
    return bad_servers.ssh_server(lab.bad, lab.host_key, behaviour)


Fault = tuple[Callable[[Lab], contextlib.AbstractContextManager[None]], str, str]

FAULTS: dict[str, Fault] = {
    "nobody listens": (lambda lab: contextlib.nullcontext(), "refused", "connect"),
    "the SYN is dropped": (lambda lab: bad_servers.dropped_syn(lab.bad), "timeout", "connect"),
    "TCP but no word": (lambda lab: bad_servers.silent(lab.bad), "timeout", "greeting"),
    "a greeting, then silence": (lambda lab: bad_servers.greeting_then_silence(lab.bad), "timeout", "key exchange"),
    "another host key": (
        lambda lab: bad_servers.ssh_server(lab.bad, lab.folder / "other", Behaviour(bad_servers.nothing)),
        "host-key",
        "key exchange",
    ),
    "the login is refused": (refuses_login, "auth", "login"),
    "no channel is opened": (refuses_channels, "session", "session"),
    "the command hangs": (
        lambda lab: bad_servers.ssh_server(lab.bad, lab.host_key, Behaviour(bad_servers.nothing)),
        "timeout",
        "command",
    ),
    "the node freezes half way": (
        lambda lab: bad_servers.ssh_server(lab.bad, lab.host_key, Behaviour(bad_servers.freezes)),
        "timeout",
        "command",
    ),
    "the node reboots half way": (
        lambda lab: bad_servers.ssh_server(lab.bad, lab.host_key, Behaviour(bad_servers.reboots)),
        "lost",
        "command",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_one_bad_node_of_64_is_named_and_costs_the_others_nothing(lab: Lab, healthy_s: float, fault: str) -> None:
    server, kind, phase = FAULTS[fault]
    with server(lab):
        flags = ("--connect-timeout", f"{CONNECT_S}s", "--timeout", f"{COMMAND_S}s")
        rows, done, took_s = lab.run("echo fine", *flags)
    bad = rows.pop(f"lab-{GOOD}")
    assert {(row["stdout"], row["exit_code"]) for row in rows.values()} == {("fine\n", 0)}
    assert len(rows) == GOOD
    assert (bad["error_class"], bad["error_phase"], bad["exit_code"]) == (kind, phase, None)
    assert f"1 of {GOOD + 1} failed: lab-{GOOD} ".encode() in done.stderr
    assert done.returncode == 4
    deadline_s = CONNECT_S if phase != "command" else CONNECT_S + COMMAND_S
    assert took_s <= deadline_s + 1 + 2 * healthy_s


@pytest.mark.parametrize(
    ("said", "shown"),
    [(b"no newline", "no newline"), (b"bad \xff utf-8\n", "bad � utf-8\n"), (b"", "")],
)
def test_odd_output_of_one_node_comes_as_it_is(lab: Lab, said: bytes, shown: str) -> None:
    with bad_servers.ssh_server(lab.bad, lab.host_key, Behaviour(bad_servers.says(said))):
        rows, done, _ = lab.run("echo fine")
    assert rows[f"lab-{GOOD}"]["stdout"] == shown
    assert len(rows) == GOOD + 1
    assert done.returncode == 0


def test_a_line_of_100_mb_is_bounded_and_holds_nobody_up(lab: Lab) -> None:
    line = 'case "${SSH_CONNECTION% *}" in *.18.5) head -c 100000000 /dev/zero | tr "\\0" x;; *) echo fine;; esac'
    rows, done, _ = lab.run(line, "--node", f"0-{GOOD - 1}", "--timeout", "30s")
    assert len(rows) == GOOD
    assert rows["lab-4"]["truncated"] is True
    assert rows["lab-4"]["stdout"] == "x" * (16 * 1024 * 1024)
    assert done.returncode == 0
