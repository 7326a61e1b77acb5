"""What every machine driver can do, and the types that it is called with."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class MachineError(Exception):
    """A machine, its network or its image could not be made or reached.

    `hint` is a command that helps, or empty.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class MachineState(StrEnum):
    """Whether a machine's processes run, are frozen, or have ended."""

    RUNNING = "running"
    FROZEN = "frozen"
    GONE = "gone"


@dataclass(frozen=True, kw_only=True)
class MachineFile:
    """A file placed in a machine before it boots."""

    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, kw_only=True)
class MachineSpec:
    """Everything a driver needs to boot one machine."""

    cluster: str
    node: str
    instance_id: str
    private_ip: str
    prefix_length: int
    gateway_ip: str
    mac: str
    user_data: bytes
    files: Mapping[str, MachineFile] = field(default_factory=dict)
    shares: Mapping[str, str] = field(default_factory=dict)
    read_only_shares: Mapping[str, str] = field(default_factory=dict)


class MachineDriver(Protocol):
    """Boots machines on this computer. Every method may be called from any thread.

    Whatever a driver starts outlives the process that called it. It finds and cleans
    machines without a state file, so a crashed caller loses nothing. The driver `none`
    is an exception to both: its machines exist only in memory.
    """

    @property
    def name(self) -> str:
        """The driver's name: nspawn, process or none."""

    def unusable(self) -> str | None:
        """Why this driver does not work here, with the command that helps; None if it does."""

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Make what all machines share (a base image), once, under a lock."""

    def create_network(self, cluster: str, cidr: str, gateway_ip: str) -> None:
        """Make the cluster's own network; nothing happens if it is there."""

    def delete_network(self, cluster: str) -> None:
        """Remove the cluster's network and whatever is left in it; nothing happens if it is gone."""

    def listen(self, cluster: str, address: str, port: int) -> socket.socket:
        """A listening TCP socket inside the cluster's network, on `address`, which is added to the network."""

    def boot(self, spec: MachineSpec) -> None:
        """Start a machine and return at once; MachineError while one of that name runs."""

    def state(self, cluster: str, node: str) -> MachineState:
        """Whether the machine's processes run, as the kernel reports it."""

    def console_tail(self, cluster: str, node: str, lines: int) -> str:
        """The last lines of a machine's console, also after it ended by itself."""

    def kill(self, cluster: str, node: str) -> None:
        """End a machine at once, with everything that belonged to it."""

    def freeze(self, cluster: str, node: str) -> None:
        """Stop all of a machine's processes where they stand."""

    def thaw(self, cluster: str, node: str) -> None:
        """Let a frozen machine go on."""

    def unplug(self, cluster: str, node: str) -> None:
        """Take a machine off its network."""

    def plug(self, cluster: str, node: str) -> None:
        """Put a machine back on its network."""

    def partition(self, cluster: str, node_a: str, node_b: str) -> None:
        """Drop all traffic between two machines; others still reach both."""

    def heal(self, cluster: str) -> None:
        """Undo every partition and every slow link of a cluster."""

    def slow(self, cluster: str, node: str, rate_mbit: int) -> None:
        """Limit what a machine receives and sends to a rate."""

    def reboot(self, cluster: str, node: str) -> None:
        """Restart a machine as its own `reboot` would; its disk stays."""

    def found(self) -> tuple[tuple[str, str], ...]:
        """(cluster, node) of every machine alive on this computer, whoever started it."""

    def clean(self, cluster: str) -> None:
        """Remove everything of a cluster, whatever state it is in, unless its machines are another home's."""
