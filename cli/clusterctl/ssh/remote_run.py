"""A remote command on its nodes, over connections that are there or that are made for it."""

from __future__ import annotations

from collections.abc import Callable

from clusterctl.ssh.fanout.canceller import Canceller
from clusterctl.ssh.fanout.dialling import Dialled
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.fanout.link_pool import LinkPool
from clusterctl.ssh.fanout.sinks import NodeSinks
from clusterctl.ssh.remote_command import RemoteCommand
from clusterctl.ssh.results import NodeResult


def run_remote(
    remote: RemoteCommand,
    sinks: NodeSinks | None,
    on_result: Callable[[NodeResult], None] | None,
    *,
    pool: LinkPool | None,
    dialled: Dialled | None = None,
    canceller: Canceller | None = None,
    on_quiet: Callable[[], None] | None = None,
) -> dict[int, NodeResult]:
    """Every node's result by its slot; what is not said by `remote` is as `run_on_nodes` has it."""
    return run_on_nodes(
        remote.inventory,
        remote.nodes,
        remote.command,
        keys=remote.keys,
        deadlines=remote.deadlines,
        stdin=remote.stdin,
        sinks=sinks,
        on_result=on_result,
        fan_out=remote.fan_out,
        is_failing_fast=remote.is_failing_fast,
        dialled=dialled,
        pool=pool,
        canceller=canceller,
        on_quiet=on_quiet,
    )
