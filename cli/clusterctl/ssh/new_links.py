"""A command on nodes over connections that are made for it, and may be kept for the next command."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from clusterctl.ssh.command import FAN_OUT
from clusterctl.ssh.fanout.dialling import dialled
from clusterctl.ssh.fanout.sinks import NodeSinks
from clusterctl.ssh.remote_command import RemoteCommand
from clusterctl.ssh.results import NodeResult
from clusterctl.system.many_files import allow_many_files

if TYPE_CHECKING:
    from clusterctl.ssh.fanout.link_pool import LinkPool


class Links(Protocol):
    """Where a command's connections come from."""

    def run(
        self,
        remote: RemoteCommand,
        *,
        sinks: NodeSinks | None = None,
        on_result: Callable[[NodeResult], None] | None = None,
    ) -> dict[int, NodeResult]:
        """Every node's result by its slot. Raises KeyboardInterrupt on Ctrl-C, or if the asking process ends."""


class NewLinks:
    """Makes a connection to each node; `keep` gets those that can take another command, once this one is done."""

    def __init__(self, keep: Callable[[LinkPool], None] | None = None) -> None:
        self._keep = keep

    def run(
        self,
        remote: RemoteCommand,
        *,
        sinks: NodeSinks | None = None,
        on_result: Callable[[NodeResult], None] | None = None,
    ) -> dict[int, NodeResult]:
        """Runs the command as `Links.run` promises."""
        allow_many_files()
        under_way = dialled(remote.inventory, remote.nodes[: remote.fan_out or FAN_OUT])
        # Imported only after the nodes were dialled: they answer meanwhile.
        fan_out = importlib.import_module("clusterctl.ssh.fanout.fan_out")
        pool: LinkPool | None = None if self._keep is None else fan_out.LinkPool()
        results: dict[int, NodeResult] = fan_out.run_remote(
            remote, sinks=sinks, on_result=on_result, links=fan_out.OpenLinks(dialled=under_way, pool=pool)
        )
        if self._keep is not None and pool is not None:
            self._keep(pool)
        return results
