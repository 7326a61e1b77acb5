"""A command on nodes over connections that are made for it, and may be kept for the next one."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from clusterctl.ssh.fanout.dialling import Dialled
from clusterctl.ssh.fanout.link_pool import LinkPool
from clusterctl.ssh.fanout.sinks import NodeSinks
from clusterctl.ssh.remote_command import RemoteCommand
from clusterctl.ssh.remote_run import run_remote
from clusterctl.ssh.results import NodeResult


def run_on_new_links(
    remote: RemoteCommand,
    sinks: NodeSinks | None,
    on_result: Callable[[NodeResult], None] | None,
    kept_in: Path | None,
    dialled: Dialled,
) -> dict[int, NodeResult]:
    """Every node's result by its slot; with `kept_in` a process stays behind that has the connections."""
    pool = None if kept_in is None else LinkPool()
    results = run_remote(remote, sinks, on_result, pool=pool, dialled=dialled)
    if pool is not None and kept_in is not None:
        # Loaded on use: by now the person has read what the nodes said.
        importlib.import_module("clusterctl.ssh.broker.process").keep_warm(pool, kept_in)
    return results
