"""A cluster of real machines, as tests of the machine drivers boot, ask and wait for it."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from pathlib import Path

import pytest
from clusterctl_rehearsal.machines import connect, processes
from clusterctl_rehearsal.machines.driver import MachineDriver, MachineFile, MachineSpec, MachineState
from clusterctl_rehearsal.machines.nspawn import NspawnDriver

BOOTHOOK = """\
#cloud-boothook
#!/bin/sh
mkdir -p /run/test && date +%s.%N >/run/test/boothook
nft -f - <<'RULES'
table inet imds {
    chain out {
        type filter hook output priority 0
        ip daddr 169.254.169.254 meta skuid != 0 reject with tcp reset
    }
}
RULES
"""
AGENT = "#!/bin/sh\nmkdir -p /etc/clusterctl\necho RANK=2 >/etc/clusterctl/env.list\n"


@dataclasses.dataclass(frozen=True, kw_only=True)
class KeyPair:
    private_file: Path
    private: str
    public: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """What one command over ssh gave."""

    code: int
    out: str
    err: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class RealCluster:
    """A network of its own with machines n-0, n-1, … at 10.77.0.11 and up."""

    driver: MachineDriver
    root: Path
    name: str
    login: KeyPair
    host: KeyPair
    folder: Path
    shares: dict[str, str]

    def spec(self, number: int) -> MachineSpec:
        return MachineSpec(
            cluster=self.name,
            node=f"n-{number}",
            instance_id=f"i-{time.time_ns():x}",
            private_ip=self.address(number),
            prefix_length=24,
            gateway_ip="10.77.0.1",
            mac=f"02:00:00:00:00:{number:02x}",
            user_data=user_data(self.login, self.host),
            files={"/bin/nvidia-smi": MachineFile(content=b"#!/bin/sh\necho simulated\n", mode=0o755)},
            shares=self.shares,
        )

    def address(self, number: int) -> str:
        return f"10.77.0.{11 + number}"

    def boot(self, count: int) -> None:
        """Boot those of the first machines that do not run; returns when they answer and have read their user-data."""
        self.driver.create_network(self.name, "10.77.0.0/24", "10.77.0.1")
        absent = [number for number in range(count) if self.state(number) is MachineState.GONE]
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(self.driver.boot, [self.spec(number) for number in absent]))
        for number in absent:
            self.wait_until_up(number)

    def wait_until_up(self, number: int, timeout_s: float = 60.0) -> None:
        finished = self.root / self.name / f"n-{number}" / "upper/var/lib/cloud/data/result.json"
        is_booted = self.driver.name != "nspawn"
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            is_booted = is_booted or finished.exists()
            if is_booted and self.ssh(number, "true").code == 0:
                return
            time.sleep(0.1)
        pytest.fail(f"n-{number} did not come up: {self.driver.console_tail(self.name, f'n-{number}', 20)}")

    def cloud_init_errors(self, number: int) -> list[str]:
        finished = self.root / self.name / f"n-{number}" / "upper/var/lib/cloud/data/result.json"
        errors: list[str] = json.loads(finished.read_text())["v1"]["errors"]
        return errors

    def ssh(self, number: int, command: str, timeout_s: int = 3) -> Answer:
        known = self.folder / "known_hosts"
        if not known.exists():
            known.write_text("".join(f"{self.address(each)} {self.host.public}\n" for each in range(32)))
        proxy = f"{sys.executable} -I -S {connect.__file__} {self.root} {self.name} %h %p"
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": str(known),
            "ConnectTimeout": str(timeout_s),
            "ProxyCommand": proxy,
        }
        argv = ["ssh", "-F", "none", "-i", str(self.login.private_file)]
        argv += [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        argv += [f"ubuntu@{self.address(number)}", command]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        return Answer(code=done.returncode, out=done.stdout, err=done.stderr)

    def state(self, number: int) -> MachineState:
        return self.driver.state(self.name, f"n-{number}")

    def found(self) -> list[str]:
        """The machines that the driver finds alive; other clusters may live on this computer too."""
        return [node for cluster, node in self.driver.found() if cluster == self.name]

    def wait_for(self, number: int, state: MachineState, timeout_s: float = 20.0) -> None:
        wait_until(lambda: self.state(number) is state, f"n-{number} is not {state}", timeout_s)

    def end(self, number: int) -> dict[str, object]:
        record: dict[str, object] = json.loads((self.root / self.name / f"n-{number}.ended").read_text())
        return record


def nspawn_cluster(cache: Path, folder: Path, login: KeyPair, host: KeyPair) -> Iterator[RealCluster]:
    """A cluster in `folder`, cleaned up however its use ends."""
    driver = NspawnDriver(root=folder / "machines", cache=cache)
    problem = driver.unusable()
    if problem is not None:
        pytest.fail(problem)
    driver.prepare(print)
    yield from clean_cluster(driver, driver.root, folder, login, host)


def clean_cluster(
    driver: MachineDriver, root: Path, folder: Path, login: KeyPair, host: KeyPair
) -> Iterator[RealCluster]:
    share = folder / "share"
    share.mkdir()
    cluster = RealCluster(
        driver=driver,
        root=root,
        name=f"t{os.getpid()}-{time.time_ns() % 10**6}",
        login=login,
        host=host,
        folder=folder,
        shares={str(share): "/mnt/shared"},
    )
    try:
        yield cluster
    finally:
        driver.clean(cluster.name)


def wait_until(is_so: Callable[[], bool], complaint: str, timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > deadline:
            pytest.fail(complaint)
        time.sleep(0.05)


def user_data(login: KeyPair, host: KeyPair) -> bytes:
    """User-data as a node gets it: gzip'd MIME of a boothook, a cloud-config and a script."""
    config = {
        "ssh_keys": {"ed25519_private": host.private, "ed25519_public": host.public},
        "users": [
            {
                "name": "ubuntu",
                "shell": "/bin/bash",
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "ssh_authorized_keys": [login.public],
            }
        ],
        "write_files": [{"path": "/usr/local/bin/clusterctl-node", "permissions": "0755", "content": AGENT}],
    }
    message = MIMEMultipart()
    for text, kind in (
        (BOOTHOOK, "cloud-boothook"),
        (f"#cloud-config\n{json.dumps(config)}", "cloud-config"),
        ("#!/bin/sh\ndate +%s.%N >/run/test/script\n", "x-shellscript"),
    ):
        message.attach(MIMEText(text, kind, "utf-8"))
    return gzip.compress(message.as_bytes(), mtime=0)


def own_supervisors(cluster: str) -> list[processes.Supervisor]:
    """The supervisors of the cluster's machines."""
    return [found for found in processes.supervisors() if found.cluster == cluster]
