"""Machines booted with the user-data that a plan renders, as tests of the bootstrap boot, ask and push to them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any  # parsed JSON

import pytest
from clusterctl.lifecycle.membership import APPLY, install_line, later_modules
from clusterctl_bootstrap.node_plan import NodeAccess, NodePlan
from clusterctl_bootstrap.render import render_user_data
from clusterctl_infra.keys import host_key, login_key
from clusterctl_infra.plan.nodes import node_trust
from clusterctl_rehearsal.machines import connect
from clusterctl_rehearsal.machines.driver import MachineFile, MachineSpec, MachineState
from clusterctl_rehearsal.machines.nspawn import NspawnDriver
from clusterctl_rehearsal.region.torch_share import torch_files, torch_share

from tests.integration.bootstrap.metadata_stub import MetadataStub

SEED = bytes(range(32))
CLUSTER_ID = "0123456789ab"
SLOT_CIDR = "10.0.8.0/21"
SLOTS = 16
SLOT = 2
"""The machine that tests share."""
ASKING_S = 0.3
"""Between two questions over ssh: each starts two programs here, and the machine needs the processor to boot."""
OWN = {"GREETING": 'it\'s "a" $x \\ `b` # ü 😀', "MASTER_PORT": "29600"}
"""What its cluster.yaml says under `env:`."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one command over ssh gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.out)
        return parsed


@dataclass(frozen=True, kw_only=True)
class Bootstrapped:
    """A network with a metadata service; slot i is at 10.0.8.i."""

    driver: NspawnDriver
    name: str
    folder: Path
    metadata: MetadataStub
    deadlines: dict[int, float] = field(default_factory=dict)
    """Slot → seconds since 1970."""

    def plan(self, slot: int, *, left_s: float, **changes: Any) -> NodePlan:
        """A node of four, eight GPUs each, whose deadline is `left_s` from now."""
        plan = NodePlan(
            cluster=self.name,
            cluster_id=CLUSTER_ID,
            run=1,
            generation=0,
            slot=slot,
            rank=slot,
            nodes=4,
            gpus_per_node=8,
            slot_cidr=SLOT_CIDR,
            deadline=datetime.fromtimestamp(int(time.time() + left_s), UTC),
        )
        return dataclasses.replace(plan, **changes)

    def boot(
        self,
        plan: NodePlan,
        files: Mapping[str, MachineFile] | None = None,
        shares: Mapping[str, str] | None = None,
    ) -> None:
        """Starts the machine of `plan` and returns at once."""
        self.deadlines[plan.slot] = plan.deadline.timestamp()
        self.driver.boot(
            MachineSpec(
                cluster=self.name,
                node=self.node(plan.slot),
                instance_id=f"i-{time.time_ns():x}",
                private_ip=address(plan.slot),
                prefix_length=20,
                gateway_ip="10.0.0.1",
                mac=f"02:00:00:00:00:{plan.slot:02x}",
                user_data=render_user_data(plan, access(plan.slot, self.name)),
                files={**torch_files(self.driver.cache), **(files or {})},
                shares=shares or {},
                read_only_shares=torch_share(self.driver.cache),
            )
        )

    def node(self, slot: int) -> str:
        return f"{self.name}-{slot}"

    def ssh(self, slot: int, command: str, *, stdin: str = "", timeout_s: float = 40) -> Answer:
        """A command as the login user, the host key checked."""
        argv = [*self.ssh_argv(slot), command]
        # Bytes, since reading as text would make a newline of a carriage return.
        done = subprocess.run(argv, input=stdin.encode(), capture_output=True, timeout=timeout_s, check=False)
        return Answer(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode(errors="replace"))

    def ssh_argv(self, slot: int) -> list[str]:
        proxy = f"{sys.executable} -I -S {connect.__file__} {self.driver.root} {self.name} %h %p"
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": str(self.folder / "known_hosts"),
            "ConnectTimeout": "5",
            "LogLevel": "ERROR",
            "ProxyCommand": proxy,
            # One login serves many commands, each a session of its own; it ends with the machine, or by itself.
            "ControlMaster": "auto",
            "ControlPath": str(self.folder / "%h"),
            "ControlPersist": "30",
        }
        words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        return ["ssh", "-F", "none", "-i", str(self.folder / "login"), *words, f"ubuntu@{address(slot)}"]

    def output(self, slot: int, command: str, *, stdin: str = "") -> str:
        """What a command printed; it must succeed."""
        answer = self.ssh(slot, command, stdin=stdin)
        assert answer.code == 0, f"{command}: exit {answer.code}: {answer.err}{answer.out}"
        return answer.out

    def status(self, slot: int) -> dict[str, Any]:
        """What the node says of itself; phase `silent` while nobody answers."""
        answer = self.ssh(slot, "clusterctl-node status")
        return answer.json if answer.code == 0 else {"phase": "silent", "stderr": answer.err}

    def wait_until_settled(self, slot: int, timeout_s: float = 60) -> dict[str, Any]:
        """The status once it is ready or failed."""
        seen: dict[str, Any] = {}

        def is_settled() -> bool:
            seen.update(self.status(slot))
            return seen["phase"] in ("ready", "failed")

        wait_until(is_settled, lambda: f"{self.node(slot)}: {seen}\n{self.console(slot)}", timeout_s, pause_s=ASKING_S)
        return seen

    def wait_until_another_boot(self, slot: int, boot_id: str) -> dict[str, Any]:
        """The status once the machine is ready or failed in another boot than `boot_id`."""
        wait_until(
            lambda: self.status(slot).get("boot_id") not in (None, boot_id),
            lambda: self.console(slot),
            timeout_s=60,
            pause_s=ASKING_S,
        )
        return self.wait_until_settled(slot)

    def wait_until_gone(self, slot: int, timeout_s: float) -> float:
        """When the machine was gone, in seconds since 1970."""
        wait_until(lambda: not self.is_alive(slot), lambda: f"{self.node(slot)} still runs", timeout_s)
        ended = self.driver.root / self.name / f"{self.node(slot)}.ended"
        return float(json.loads(ended.read_text())["time"])

    def is_alive(self, slot: int) -> bool:
        return self.driver.state(self.name, self.node(slot)) is not MachineState.GONE

    def console(self, slot: int) -> str:
        return self.driver.console_tail(self.name, self.node(slot), 30)

    def deliver_modules(self, slot: int) -> None:
        """Delivers the part of the agent that comes with the membership, as `clusterctl up` does."""
        modules = later_modules()
        self.output(slot, install_line(len(modules)), stdin=modules.decode())

    def push(self, slot: int, **changes: Any) -> Answer:
        """A membership of four nodes and an hour, with `changes`, delivered as `clusterctl up` delivers it."""
        modules = later_modules()
        sent = modules.decode() + self.membership(**changes)
        return self.ssh(slot, install_line(len(modules), *APPLY), stdin=sent)

    def membership(self, **changes: Any) -> str:
        content = {
            "version": 1,
            "cluster_id": CLUSTER_ID,
            "run": 1,
            "generation": 1,
            "nodes": 4,
            "slot_cidr": SLOT_CIDR,
            "deadline": iso(time.time() + 3600),
            "env": {},
            "gpus_per_node": 8,
            "authorized_keys": None,
        }
        return json.dumps({**content, **changes})


@contextlib.contextmanager
def a_network(folder: Path) -> Iterator[Bootstrapped]:
    """A cluster's network without machines. Needs root; whatever happens, nothing of it is left."""
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "clusterctl"
    driver = NspawnDriver(root=folder / "machines", cache=Path(os.environ.get("CLUSTERCTL_CACHE", default)))
    problem = driver.unusable()
    if problem is not None:
        pytest.fail(problem)
    driver.prepare(print)
    (folder / "login").write_text(login_key(SEED).private_pem)
    (folder / "login").chmod(0o600)
    known = "".join(f"{address(slot)} {host_key(SEED, slot).public}\n" for slot in range(SLOTS))
    (folder / "known_hosts").write_text(known)
    name = f"b{os.getpid()}-{time.time_ns() % 10**6}"
    driver.create_network(name, "10.0.0.0/16", "10.0.0.1")
    metadata = MetadataStub(driver.listen(name, "169.254.169.254", 80))
    metadata.start()
    try:
        yield Bootstrapped(driver=driver, name=name, folder=folder, metadata=metadata)
    finally:
        metadata.stop()
        driver.clean(name)


def access(slot: int, cluster: str = "train") -> NodeAccess:
    key = host_key(SEED, slot)
    return NodeAccess(
        user="ubuntu",
        authorized_keys=(login_key(SEED).public,),
        host_private_key=key.private_pem,
        host_public_key=key.public,
        trust=node_trust(SEED, slot, name=f"{cluster}-{slot}", address=address(slot)),
    )


def address(slot: int) -> str:
    return f"10.0.8.{slot}"


def iso(epoch_s: float) -> str:
    return datetime.fromtimestamp(int(epoch_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def wait_until(
    is_so: Callable[[], bool], complaint: Callable[[], str], timeout_s: float, *, pause_s: float = 0.05
) -> None:
    until = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > until:
            pytest.fail(f"not within {timeout_s:.0f} s: {complaint()}")
        time.sleep(pause_s)
