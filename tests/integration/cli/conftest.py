"""A cluster made of real sshd processes on loopback addresses, with an inventory that declares their host keys."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from clusterctl_infra.outputs import Inventory, InventoryNode, InventorySsh, inventory_to_json
from clusterctl_infra.private_home import make_private_folder

from tests.integration.cli.kept_connections import WARM, await_warm, end_warm
from tests.integration.free_port import free_port
from tests.inventories import make_inventory

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin")
START_S = 10.0


@dataclass
class LoopbackCluster:
    """Nodes `train-0` … on 127.0.17.1 …, all at one port."""

    folder: Path
    home: Path
    port: int
    inventory: Inventory
    servers: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, slot: int, *, more: str = "") -> None:
        """An sshd for the slot, with the host key that lies in the slot's folder, and `more` in its settings."""
        node = self.folder / f"node-{slot}"
        config = node / "sshd.conf"
        # A home without the .bashrc of whoever runs the tests: bash reads it over SSH, and some take a second. Commands
        # begin in the node's own folder, as files do: the nodes share the user and so the real home.
        (node / ".bashrc").write_text(f"cd {node}\n")
        config.write_text(
            f"ListenAddress {address(slot)}\nPort {self.port}\nHostKey {node / 'host_key'}\n"
            f"AuthorizedKeysFile {self.folder / 'login.pub'}\nPidFile none\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
            f"Subsystem sftp internal-sftp -d {node}\n"
            f"MaxStartups 100\nAcceptEnv NOTHING\nSetEnv PATH={node / 'bin'}:/usr/bin:/bin HOME={node}\n{more}"
        )
        assert SSHD is not None
        log = (node / "sshd.log").open("ab")
        self.servers[slot] = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", str(config)], stderr=log, stdin=subprocess.DEVNULL
        )
        log.close()
        wait_for_port(address(slot), self.port)

    def install_agent(self, slot: int, report: str) -> None:
        """The node's `clusterctl-node status` prints this."""
        program = self.folder / f"node-{slot}" / "bin" / "clusterctl-node"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{report}\nEND\n")
        program.chmod(0o755)

    def install_ssh(self, slot: int, *, break_after_bytes: int | None = None, is_lost: bool = False) -> None:
        """The node's `ssh train-2` reaches that node without questions; it may break off in the middle of its input,
        and take the connection from here with it."""
        (self.folder / "ssh_config").write_text(
            "".join(f"Host {node.name}\n  HostName {node.private_ip}\n" for node in self.inventory.nodes)
            + f"Host *\n  Port {self.port}\n  IdentityFile {self.folder / 'login'}\n  StrictHostKeyChecking no\n"
            "  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
        )
        program = self.folder / f"node-{slot}" / "bin" / "ssh"
        program.parent.mkdir(exist_ok=True)
        real = f'/usr/bin/ssh -F {self.folder / "ssh_config"} "$@"'
        # The shell that runs this program is the child of the sshd process that serves the connection.
        end = "kill -9 $(ps -o ppid= -p $PPID)" if is_lost else "echo the way broke >&2; exit 255"
        broken = f"head -c {break_after_bytes} | {real}; {end}"
        program.write_text(f"#!/bin/sh\n{broken if break_after_bytes else f'exec {real}'}\n")
        program.chmod(0o755)

    def stop(self, slot: int) -> None:
        """The slot's port refuses from now on."""
        server = self.servers.pop(slot)
        server.terminate()
        server.wait(timeout=5)

    def change_host_key(self, slot: int) -> None:
        """Another machine answers at the slot's address."""
        self.stop(slot)
        make_key(self.folder / f"node-{slot}" / "host_key")
        self.start(slot)

    def declare_host_key(self, slot: int, kind: str) -> None:
        """The slot's sshd has a new key of this kind and no other, and the inventory declares it."""
        self.stop(slot)
        make_key(self.folder / f"node-{slot}" / "host_key", kind)
        self.start(slot)
        self.write_inventory(loopback_inventory(self.folder, range(4), port=self.port))

    def write_inventory(self, inventory: Inventory) -> None:
        self.inventory = inventory
        path = self.home / "inventory" / f"{inventory.cluster}.json"
        make_private_folder(path.parent)
        path.write_text(json.dumps(inventory_to_json(inventory)))

    def behind_bastion(self, *, max_startups: int) -> tuple[int, Path]:
        """Nodes are reached by one more sshd from now on, which turns further connections away; its port and log."""
        with socket.create_server((address(0), 0)) as free:
            port = free.getsockname()[1]
        config, log = self.folder / "bastion.conf", self.folder / "bastion.log"
        usual = (self.folder / "node-0/sshd.conf").read_text()
        own = {f"Port {self.port}\n": f"Port {port}\n", "MaxStartups 100\n": f"MaxStartups {max_startups}\n"}
        for before, after in {**own, "PidFile none\n": "PidFile none\nLogLevel VERBOSE\n"}.items():
            usual = usual.replace(before, after)
        config.write_text(usual)
        assert SSHD is not None
        with log.open("ab") as file:
            argv = [SSHD, "-D", "-e", "-f", str(config)]
            self.servers[-1] = subprocess.Popen(argv, stderr=file, stdin=subprocess.DEVNULL)
        wait_for_port(address(0), port)
        unasked = ("BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null")
        options = [word for option in unasked for word in ("-o", option)]
        login = ("-F", "none", "-i", str(self.folder / "login"), "-p", str(port))
        self.by_proxy("ssh", *login, *options, "-W", "{host}:{port}", address(0))
        return port, log

    def by_proxy(self, *argv: str) -> None:
        """Nodes are reached by this command from now on."""
        self.write_inventory(replace(self.inventory, ssh=replace(self.inventory.ssh, proxy_command=tuple(argv))))

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, "CLUSTERCTL_HOME": str(self.home)}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "clusterctl", *arguments]

    def run(
        self, *arguments: str, stdin: bytes = b"", timeout_s: float = 30, environ: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """`clusterctl ARGUMENTS`, to its end."""
        return subprocess.run(
            self.command(*arguments),
            input=stdin,
            capture_output=True,
            timeout=timeout_s,
            env={**self.environ, **(environ or {})},
        )

    def close(self) -> None:
        for slot in list(self.servers):
            self.stop(slot)


@pytest.fixture
def loopback_cluster(tmp_path: Path, own_home: Path) -> Iterator[LoopbackCluster]:
    """Four nodes, each a real sshd, for tests that break something."""
    with made_cluster(tmp_path / "nodes", own_home) as cluster:
        yield cluster


@pytest.fixture
def trusting_cluster(loopback_cluster: LoopbackCluster) -> LoopbackCluster:
    """The same, and each node reaches the others by name, as nodes that clusterctl made do."""
    for slot in range(4):
        loopback_cluster.install_ssh(slot)
    return loopback_cluster


@pytest.fixture(scope="session")
def steady_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackCluster]:
    """The same, once for all tests that leave it as it is."""
    folder = tmp_path_factory.mktemp("steady")
    with made_cluster(folder / "nodes", folder / "home") as cluster:
        yield cluster


@pytest.fixture
def warm_cluster(loopback_cluster: LoopbackCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackCluster]:
    monkeypatch.setenv("CLUSTERCTL_WARM", "yes")
    yield loopback_cluster
    end_warm(loopback_cluster)


@pytest.fixture(scope="module")
def steady_warm_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackCluster]:
    """Once for all tests that leave it as it is, its connections kept."""
    folder = tmp_path_factory.mktemp("warm")
    with made_cluster(folder / "nodes", folder / "home") as cluster:
        assert cluster.run("ssh", "true", environ=WARM).returncode == 0
        await_warm(cluster)
        yield cluster
        end_warm(cluster)


@contextlib.contextmanager
def made_cluster(folder: Path, home: Path) -> Iterator[LoopbackCluster]:
    """Four sshd processes that end with the block."""
    if SSHD is None:
        pytest.fail("these tests need sshd: scripts/system-packages")
    Path("/run/sshd").mkdir(exist_ok=True)
    folder.mkdir()
    make_key(folder / "login")
    keys = home / "keys" / "train"
    make_private_folder(keys)
    shutil.copy(folder / "login", keys / "id_ed25519")
    slots = range(4)
    for slot in slots:
        (folder / f"node-{slot}").mkdir()
        make_key(folder / f"node-{slot}" / "host_key")
    port = free_port([address(slot) for slot in slots])
    inventory = loopback_inventory(folder, slots, port=port)
    cluster = LoopbackCluster(folder=folder, home=home, port=port, inventory=inventory)
    cluster.write_inventory(inventory)
    with contextlib.closing(cluster):
        for slot in slots:
            cluster.start(slot)
        yield cluster


def loopback_inventory(folder: Path, slots: Sequence[int], *, port: int) -> Inventory:
    return make_inventory(
        deadline="2099-11-22T10:00:00+00:00",
        generation=1,
        ssh=InventorySsh(user=getpass.getuser(), key_file="train/id_ed25519", proxy_command=None, port=port),
        nodes=tuple(
            InventoryNode(
                slot=slot,
                rank=slot,
                name=f"train-{slot}",
                private_ip=address(slot),
                host_public_key=(folder / f"node-{slot}" / "host_key.pub").read_text().strip(),
                instance_id=f"i-{slot:017x}",
            )
            for slot in slots
        ),
    )


def address(slot: int) -> str:
    return f"127.0.17.{slot + 1}"


def make_key(path: Path, kind: str = "ed25519") -> None:
    for old in (path, path.with_name(path.name + ".pub")):
        old.unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "", "-f", str(path)], check=True, timeout=10)


def wait_for_port(host: str, port: int) -> None:
    ends_at = time.monotonic() + START_S
    while time.monotonic() < ends_at:
        with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
            return
        time.sleep(0.02)
    raise AssertionError(f"no sshd at {host}:{port}")
