"""A driver of machines that only says what it is called, and whether it works here."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import NoReturn

from clusterctl_rehearsal.machines.driver import MachineDriver, MachineSpec, MachineState


class FakeDriver(MachineDriver):
    """Makes nothing: a test in which a machine is touched fails."""

    def __init__(self, name: str, problem: str | None = None) -> None:
        """`problem`: why it does not work here."""
        self._name, self._problem = name, problem

    @property
    def name(self) -> str:
        return self._name

    def unusable(self) -> str | None:
        return self._problem

    def found(self) -> tuple[tuple[str, str], ...]:
        return ()

    def prepare(self, progress: Callable[[str], None]) -> None:
        _touched()

    def create_network(self, cluster: str, cidr: str, gateway_ip: str) -> None:
        _touched()

    def delete_network(self, cluster: str) -> None:
        _touched()

    def listen(self, cluster: str, address: str, port: int) -> socket.socket:
        _touched()

    def boot(self, spec: MachineSpec) -> None:
        _touched()

    def state(self, cluster: str, node: str) -> MachineState:
        _touched()

    def console_tail(self, cluster: str, node: str, lines: int) -> str:
        _touched()

    def kill(self, cluster: str, node: str) -> None:
        _touched()

    def freeze(self, cluster: str, node: str) -> None:
        _touched()

    def thaw(self, cluster: str, node: str) -> None:
        _touched()

    def unplug(self, cluster: str, node: str) -> None:
        _touched()

    def plug(self, cluster: str, node: str) -> None:
        _touched()

    def partition(self, cluster: str, node_a: str, node_b: str) -> None:
        _touched()

    def heal(self, cluster: str) -> None:
        _touched()

    def slow(self, cluster: str, node: str, rate_mbit: int) -> None:
        _touched()

    def reboot(self, cluster: str, node: str) -> None:
        _touched()

    def clean(self, cluster: str) -> None:
        _touched()


def _touched() -> NoReturn:
    raise AssertionError("a machine was touched")
