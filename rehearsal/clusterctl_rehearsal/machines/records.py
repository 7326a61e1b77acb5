"""Machines that are only written down: for measuring the engine without booting anything."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

from clusterctl_rehearsal.machines.driver import MachineError, MachineSpec, MachineState


class RecordsDriver:
    """Keeps the states of machines that do not exist, in memory: they are gone when this process ends."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, str], MachineState] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The driver's name in rehearsal.yaml."""
        return "none"

    def unusable(self) -> str | None:
        """None: writing down works everywhere."""
        return None

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Nothing to prepare."""

    def create_network(self, cluster: str, cidr: str, gateway_ip: str) -> None:
        """No network is made."""

    def delete_network(self, cluster: str) -> None:
        """There is no network."""

    def listen(self, cluster: str, address: str, port: int) -> socket.socket:
        """A listening socket on loopback, at a port that the kernel chooses; no machine connects to it."""
        return socket.create_server(("127.0.0.1", 0))

    def boot(self, spec: MachineSpec) -> None:
        """Write a machine down as running."""
        with self._lock:
            if (spec.cluster, spec.node) in self._states:
                raise MachineError(f"{spec.node} of {spec.cluster} is already running")
            self._states[spec.cluster, spec.node] = MachineState.RUNNING

    def state(self, cluster: str, node: str) -> MachineState:
        """What was written down."""
        return self._states.get((cluster, node), MachineState.GONE)

    def console_tail(self, cluster: str, node: str, lines: int) -> str:
        """A sentence in place of a console."""
        return "(machines: none: this machine is only written down)"

    def kill(self, cluster: str, node: str) -> None:
        """Strike a machine out."""
        with self._lock:
            self._states.pop((cluster, node), None)

    def freeze(self, cluster: str, node: str) -> None:
        """Write down that a machine stands still."""
        self._change(cluster, node, MachineState.FROZEN)

    def thaw(self, cluster: str, node: str) -> None:
        """Write down that a machine runs again."""
        self._change(cluster, node, MachineState.RUNNING)

    def unplug(self, cluster: str, node: str) -> None:
        """There is no link to cut."""

    def plug(self, cluster: str, node: str) -> None:
        """There is no link to mend."""

    def partition(self, cluster: str, node_a: str, node_b: str) -> None:
        """There is no network to part."""

    def heal(self, cluster: str) -> None:
        """There is no network to heal."""

    def slow(self, cluster: str, node: str, rate_mbit: int) -> None:
        """There is no link to slow."""

    def reboot(self, cluster: str, node: str) -> None:
        """A machine that does not exist is up again at once."""
        self._change(cluster, node, MachineState.RUNNING)

    def found(self) -> tuple[tuple[str, str], ...]:
        """What was written down."""
        return tuple(sorted(self._states))

    def clean(self, cluster: str) -> None:
        """Strike out a cluster."""
        with self._lock:
            for key in [key for key in self._states if key[0] == cluster]:
                del self._states[key]

    def _change(self, cluster: str, node: str, state: MachineState) -> None:
        with self._lock:
            if (cluster, node) not in self._states:
                raise MachineError(f"{node} of {cluster} does not run")
            self._states[cluster, node] = state
