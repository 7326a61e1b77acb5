"""Machines that somebody else set up, as tests of `target: hosts` find them: a user, a key, sshd; nothing of ours."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from clusterctl_bootstrap.kept_texts import cache_folder
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.keys import host_key, login_key
from clusterctl_rehearsal.machines.driver import MachineSpec
from clusterctl_rehearsal.machines.names import cluster_namespace
from clusterctl_rehearsal.machines.nspawn import NspawnDriver
from clusterctl_rehearsal.packages.files import package_files
from clusterctl_rehearsal.storage.files import storage_binds, storage_files

from tests.integration.rehearsed import wait_until

CATALOG = load_catalog()
SEED = bytes(reversed(range(32)))
USER = "ada"
ANSWER_S = 60.0
SNAPSHOT = (
    "sudo find /etc /usr/local /home /var/lib/clusterctl /var/log/clusterctl* /run/clusterctl* "
    "/run/systemd/logind.conf.d -xdev ! -type d ! -name '*.journal' -printf '%p %s %m %l\\n' 2>/dev/null | "
    "grep -v -e /etc/resolv.conf -e /home/ada/.cache -e .bash_history | sort; sudo cat /etc/hosts"
)
"""Every file that an install could add or change, with its size and mode."""


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """A network with machines at 10.0.8.i."""

    driver: NspawnDriver
    name: str
    folder: Path
    environ: tuple[tuple[str, str], ...] = ()
    """Variables of the command line, beside this process's."""

    @property
    def shares(self) -> Path:
        """A folder for each file server that the machines can mount from, once they have a client."""
        return self.folder / "shares"

    @property
    def key_file(self) -> Path:
        return self.folder / "login"

    def boot(self, number: int) -> None:
        """Starts the machine; returns at once."""
        key = host_key(SEED, number)
        config = {
            "hostname": f"gpu-{number}",
            "ssh_deletekeys": True,
            "ssh_keys": {"ed25519_private": key.private_pem, "ed25519_public": key.public},
            "users": [
                {
                    "name": USER,
                    "shell": "/bin/bash",
                    "sudo": "ALL=(ALL) NOPASSWD:ALL",
                    "lock_passwd": True,
                    "ssh_authorized_keys": [login_key(SEED).public],
                }
            ],
        }
        self.driver.boot(
            MachineSpec(
                cluster=self.name,
                node=f"gpu-{number}",
                instance_id=f"i-{time.time_ns():x}",
                private_ip=address(number),
                prefix_length=20,
                gateway_ip="10.0.0.1",
                mac=f"02:00:00:00:00:{number:02x}",
                user_data=("#cloud-config\n" + json.dumps(config)).encode(),
                files={**storage_files(CATALOG.types["p5.48xlarge"]), **package_files(CATALOG.mount_clients)},
                shares=storage_binds(self.shares),
            )
        )

    def wait_for_ssh(self, number: int) -> None:
        """Returns when the machine is as its owner set it up."""
        wait_until(
            lambda: self.ssh(number, "cloud-init status --wait >/dev/null 2>&1; true").returncode == 0,
            what=f"{address(number)} answers",
            timeout_s=ANSWER_S,
        )

    def ssh(self, number: int, command: str) -> subprocess.CompletedProcess[str]:
        """A command as the owner's user, by system ssh."""
        options = ("BatchMode=yes", "StrictHostKeyChecking=yes", f"UserKnownHostsFile={self.folder}/known_hosts")
        # sshd refuses connections for a moment when it reads its configuration again, as after an install or a `down`.
        patience = ("ConnectTimeout=5", "ConnectionAttempts=5", "LogLevel=ERROR")
        words = [word for option in (*options, *patience) for word in ("-o", option)]
        argv = ["ssh", "-F", "none", "-i", str(self.key_file), *words, f"{USER}@{address(number)}", command]
        return self._inside(argv)

    def gain_ipv6(self, number: int) -> None:
        """The machine and this computer's end of the network have IPv6 addresses until they are gone."""
        find = "ip -o -4 addr show | awk '$4 ~ /^10\\.0\\./ { print $2; exit }'"
        bridge = self._inside(["sh", "-c", find]).stdout.strip()
        enable = "sysctl -q net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0; "
        for where, device in ((None, bridge), (number, "host0")):
            line = f"{enable}ip -6 addr replace {address_6(where or 255)}/64 dev {device} nodad"
            done = self._inside(["sh", "-c", line]) if where is None else self.ssh(where, f"sudo sh -c '{line}'")
            assert done.returncode == 0, done.stderr

    def snapshot(self, number: int) -> str:
        """All files that an install could add or change."""
        done = self.ssh(number, SNAPSHOT)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def clusterctl(self, *words: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """The command line, on a computer in the machines' network."""
        return self._inside([sys.executable, "-m", "clusterctl", *words], timeout_s=timeout_s)

    def ok(self, *words: str) -> str:
        """The stdout of a command, which has to succeed."""
        done = self.clusterctl(*words)
        assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def python(self, program: str) -> subprocess.CompletedProcess[str]:
        """A program that uses clusterctl, on that computer."""
        return self._inside([sys.executable, "-c", program])

    def clean(self) -> None:
        """Takes down every cluster that this home knows: the next test finds machines that are nobody's nodes."""
        for record in sorted((self.folder / "home/hosts").glob("*.json")):
            done = self.clusterctl("down", "--cluster", f"{record.stem}@hosts", "--yes")
            assert done.returncode == 0, done.stderr

    def _inside(self, argv: list[str], *, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        own = {"CLUSTERCTL_HOME": str(self.folder / "home"), "CLUSTERCTL_WARM": "off"}
        environ = {**os.environ, **own, **dict(self.environ)}
        return subprocess.run(
            ["ip", "netns", "exec", cluster_namespace(self.name), *argv],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            env=environ,
            check=False,
        )

    def write_stack(
        self, folder: Path, *, hosts: str, more: str = "", user: str = USER, bastion: str | None = None
    ) -> Path:
        """A cluster.yaml in a new folder; `hosts`: lines of the list."""
        folder.mkdir(exist_ok=True)
        way = "" if bastion is None else f", bastion: {bastion}"
        (folder / "cluster.yaml").write_text(
            f"target: hosts\nname: lab\nhosts:\n{hosts}ssh: {{user: {user}, key_file: {self.key_file}, "
            f"known_hosts: {self.folder}/known_hosts{way}}}\n{more}"
        )
        return folder


@contextlib.contextmanager
def foreign_network(folder: Path) -> Iterator[Foreign]:
    """A network without machines. Needs root; whatever happens, nothing of it is left."""
    driver = NspawnDriver(root=folder / "machines", cache=cache_folder(os.environ))
    if (problem := driver.unusable()) is not None:
        pytest.fail(problem)
    driver.prepare(print)
    (folder / "login").write_text(login_key(SEED).private_pem)
    (folder / "login").chmod(0o600)
    (folder / "known_hosts").write_text("".join(f"{address(n)} {host_key(SEED, n).public}\n" for n in range(1, 9)))
    name = f"f{os.getpid()}-{time.time_ns() % 10**6}"
    driver.create_network(name, "10.0.0.0/16", "10.0.0.1")
    try:
        yield Foreign(driver=driver, name=name, folder=folder)
    finally:
        driver.clean(name)


def address(number: int) -> str:
    return f"10.0.8.{number}"


def address_6(number: int) -> str:
    return f"fd00:8::{number}"


BOTH = f"  - {address(1)}\n  - {address(2)}\n"
"""Lines of `hosts:`."""
