"""A loopback cluster behind Session Manager.

The stand-in for `aws ssm start-session` leads to a real sshd on this computer, and writes down each session.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clusterctl.ssh.shared_session import opening, relay
from clusterctl_infra.plan.inventory import proxy_command

from tests.integration.cli.kept_connections import WARM, end_warm
from tests.unit.infra.plan.plan_cases import a_config, a_plan

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster

ACCESS = {"mode": "private"}
PLUGIN_WORDS = "echo; echo 'Starting session with SessionId: someone-0123456789abcdef0'\n"
"""What the Session Manager plugin says before it is connected (aws/session-manager-plugin, session.go; 2026-11-26)."""


@dataclass(frozen=True, kw_only=True)
class PrivateCluster:
    """A loopback cluster whose nodes are reached by sessions alone."""

    nodes: LoopbackCluster
    programs: Path
    """The folder of the stand-ins."""

    @property
    def path(self) -> str:
        return f"{self.programs}:{os.environ['PATH']}"

    @property
    def environ(self) -> dict[str, str]:
        return {**WARM, "PATH": self.path}

    @property
    def shared_folder(self) -> Path:
        """The folder of the shared session."""
        return self.nodes.home / "warm" / relay.FOLDER_NAME / self.nodes.inventory.cluster

    @property
    def controls(self) -> list[str]:
        """The sockets of the sessions that are shared, and of those that were."""
        return sorted(file.name for file in self.shared_folder.glob(opening.CONTROLS))

    @property
    def failure(self) -> dict[str, Any]:
        """Why no session could be shared."""
        failed: dict[str, Any] = json.loads((self.shared_folder / relay.FAILED).read_bytes())
        return failed

    @property
    def sessions(self) -> list[str]:
        """The instances to which sessions were started, in this order."""
        file = self.programs / "sessions"
        return file.read_text().split() if file.exists() else []

    def run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return self.nodes.run(*arguments, stdin=stdin, environ=self.environ, timeout_s=60)

    def signal(self, slot: int, number: signal.Signals) -> None:
        """Sends the signal to the node's sshd and to all connections that it serves."""
        server = self.nodes.servers[slot].pid
        for pid in [server, *_children(server)]:
            os.kill(pid, number)

    def lead_to(self, slot: int, instance_id: str) -> None:
        """A session to this instance leads to the slot from now on, and one to its old machine nowhere."""
        program = self.programs / "aws"
        program.write_text(program.read_text().replace(f"{instance(slot)})", f"{instance_id})"))

    def close(self) -> None:
        for slot in self.nodes.servers:
            self.signal(slot, signal.SIGCONT)
        if self.shared_folder.is_dir():
            for control in self.controls:
                opening.end_master(self.shared_folder, control)
        end_warm(self.nodes)


def made_private(cluster: LoopbackCluster, programs: Path) -> PrivateCluster:
    """The cluster, with stand-ins for AWS's programs in that folder, to be closed."""
    command = proxy_command(a_config(access=ACCESS), a_plan(access=ACCESS))
    assert command is not None
    cluster.by_proxy(*command)
    cases = "".join(f"{node.instance_id}) host={node.private_ip};;\n" for node in cluster.inventory.nodes)
    session = (
        f'#!/bin/sh\necho "$6" >>{programs}/sessions\ncase "$6" in\n{cases}*) exit 9;; esac\n'
        f"{PLUGIN_WORDS}exec nc $host {cluster.port}\n"
    )
    programs.mkdir()
    for name, text in {"aws": session, "session-manager-plugin": "#!/bin/sh\n"}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return PrivateCluster(nodes=cluster, programs=programs)


def instance(slot: int) -> str:
    """The id of the machine in this slot of a loopback cluster."""
    return f"i-{slot:017x}"


def _children(pid: int) -> list[int]:
    direct = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*direct, *(below for child in direct for below in _children(child))]
