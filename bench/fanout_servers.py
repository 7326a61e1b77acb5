"""SSH servers on loopback addresses: real sshd, or light ones that leave the processor to the client."""

from __future__ import annotations

import getpass
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.peer_tools import Hosts, light_server

PORT = 2399
START_S = 10.0
MOST_ADDRESSES = 16
"""One sshd listens on no more (MAX_LISTEN_SOCKS in its source)."""
SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin")


@contextmanager
def real_sshd(count: int) -> Iterator[Hosts]:
    """Processes of sshd, each listening on several addresses; sshd starts a process for every connection."""
    with _folder() as folder, ExitStack() as servers:
        hosts = _hosts(folder, count)
        Path("/run/sshd").mkdir(exist_ok=True)
        addresses = _addresses(count)
        for first in range(0, count, MOST_ADDRESSES):
            servers.enter_context(_sshd(folder, addresses[first : first + MOST_ADDRESSES]))
        yield hosts


@contextmanager
def _sshd(folder: Path, addresses: list[str]) -> Iterator[None]:
    assert SSHD is not None, "apt-get install openssh-server"
    config, log = folder / f"{addresses[0]}.conf", folder / f"{addresses[0]}.log"
    config.write_text(
        "".join(f"ListenAddress {address}\n" for address in addresses)
        + f"Port {PORT}\nHostKey {folder / 'host'}\nAuthorizedKeysFile {folder / 'login.pub'}\nPidFile none\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nMaxStartups 1000\n"
        f"SetEnv HOME={folder}\n"  # bash reads .bashrc over SSH, and some people's takes a second
    )
    argv = [SSHD, "-D", "-e", "-f", str(config)]
    with log.open("wb") as log_file, subprocess.Popen(argv, stderr=log_file, stdin=subprocess.DEVNULL) as server:
        ends_at = time.monotonic() + START_S
        while log.read_text().count("listening") < len(addresses):
            assert time.monotonic() < ends_at, log.read_text()
            time.sleep(0.05)
        try:
            yield
        finally:
            server.terminate()


@contextmanager
def light_servers(count: int, *, round_trip_ms: int = 0) -> Iterator[Hosts]:
    """`count` servers in one Go program; `round_trip_ms` is added to every exchange but TCP's handshake."""
    program = light_server()
    assert program is not None, "the light servers need Go"
    with _folder() as folder:
        hosts = _hosts(folder, count)
        (folder / "addresses").write_text("\n".join(_addresses(count)))
        argv = [str(program), str(folder / "host"), str(folder / "addresses"), str(PORT), f"{round_trip_ms / 2}ms"]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            server.stdout.readline()
            try:
                yield hosts
            finally:
                server.terminate()


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="clusterctl-bench-") as name:
        yield Path(name)


def _addresses(count: int) -> list[str]:
    return [f"127.{60 + number // 250}.0.{1 + number % 250}" for number in range(count)]


def _hosts(folder: Path, count: int) -> Hosts:
    """Makes the keys, and the lists of hosts that the tools read."""
    for name in ("login", "host"):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / name)]
        subprocess.run(argv, check=True, timeout=30)
    key, file = (folder / "host.pub").read_text().strip(), folder / "hosts"
    file.write_text("".join(f"{address} {key}\n" for address in _addresses(count)))
    Path(f"{file}.known_hosts").write_text("".join(f"[{address}]:{PORT} {key}\n" for address in _addresses(count)))
    nodes = [{"name": f"lab-{n}", "address": address, "host_key": key} for n, address in enumerate(_addresses(count))]
    ssh = {"user": getpass.getuser(), "port": PORT, "key_file": str(folder / "login")}
    Path(f"{file}.json").write_text(json.dumps({"ssh": ssh, "nodes": nodes}))
    return Hosts(key=folder / "login", file=file, port=PORT, count=count)
