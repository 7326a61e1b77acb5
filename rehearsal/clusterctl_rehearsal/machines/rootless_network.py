"""A cluster's network held by a holder process, changed from outside by entering its namespaces."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from clusterctl_rehearsal.machines import processes
from clusterctl_rehearsal.machines.detached import search_path, start_detached
from clusterctl_rehearsal.machines.driver import MachineError
from clusterctl_rehearsal.machines.names import BRIDGE, checked
from clusterctl_rehearsal.machines.network import bridge_commands

_TIMEOUT_S = 20.0


def create(root: Path, cluster: str, cidr: str, gateway_ip: str) -> None:
    """Start the cluster's holder unless there is one, and make its bridge."""
    folder = root / checked(cluster)
    folder.mkdir(parents=True, exist_ok=True)
    if holder(cluster) is None:
        problem = start_detached(processes.HOLDER_MODULE, (str(root), cluster), folder / "holder.log")
        if problem is not None:
            raise MachineError(f"the network of {cluster} could not be made: {problem}")
    batch(required_holder(cluster), bridge_commands(cidr, gateway_ip), tolerant=True)


def delete(cluster: str) -> None:
    """End the cluster's holder; nothing happens if there is none."""
    for found in processes.holders():
        if found.cluster == cluster:
            processes.send(found.process_id, signal.SIGKILL)
            processes.wait_until_gone(found.process_id)


def holder(cluster: str) -> int | None:
    """The process id of the cluster's holder; None if there is none."""
    return next((found.process_id for found in processes.holders() if found.cluster == cluster), None)


def required_holder(cluster: str) -> int:
    """The process id of the cluster's holder; MachineError if there is none."""
    process_id = holder(cluster)
    if process_id is None:
        raise MachineError(f"cluster {cluster} has no network on this computer")
    return process_id


def add_address(cluster: str, address: str) -> None:
    """Give the VPC one more address, which its machines reach through their gateway."""
    batch(required_holder(cluster), (f"addr replace {address}/32 dev {BRIDGE}",))


def batch(process_id: int, commands: Sequence[str], *, tolerant: bool = False) -> None:
    """Run `ip` commands in a process's network; `tolerant` lets each fail."""
    argv = ("ip", *(("-force",) if tolerant else ()), "-batch", "-")
    run(process_id, argv, "\n".join(commands), tolerant=tolerant)


def run(process_id: int, argv: Sequence[str], text: str = "", *, tolerant: bool = False) -> None:
    """Run a command as root of a process's user namespace, in its network."""
    whole = (*entering(process_id), *argv)
    environment = {**os.environ, "PATH": search_path()}
    done = subprocess.run(whole, input=text, text=True, capture_output=True, timeout=_TIMEOUT_S, env=environment)
    if done.returncode != 0 and not tolerant:
        raise MachineError(f"{' '.join(argv)}: {done.stderr.strip()}")


def entering(process_id: int) -> tuple[str, ...]:
    """The command prefix that runs something inside a process's user and network namespaces."""
    return ("nsenter", "--target", str(process_id), "--user", "--net", "--preserve-credentials")
