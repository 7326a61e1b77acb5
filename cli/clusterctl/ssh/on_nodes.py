"""`clusterctl ssh` with a command: on one node as ssh would, on several with names before the lines."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from clusterctl_infra.errors import ClusterctlError, NotReached, SomeNodesFailed
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.home import Home
from clusterctl.output import Output
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fan_out import NodeSinks, run_on_nodes
from clusterctl.ssh.login_keys import LoginKeys, load_login_keys
from clusterctl.ssh.reached import not_reached
from clusterctl.ssh.results import NodeResult, failure_summary
from clusterctl.views.node_result import node_result_json
from clusterctl.views.prefixed import LinePrefixer

READ_S = 10.0


@dataclass(frozen=True, kw_only=True)
class RemoteCommand:
    """A command, where it runs, and how long it may take."""

    inventory: Inventory
    nodes: tuple[InventoryNode, ...]
    line: str
    keys: LoginKeys
    deadlines: Deadlines
    timeout_s: float | None


def remote_command(
    inventory: Inventory,
    nodes: tuple[InventoryNode, ...],
    line: str,
    *,
    home: Home,
    deadlines: Deadlines,
    timeout_s: float | None,
) -> RemoteCommand:
    """The command with the keys to run it by. Raises NotReached when this computer has no usable key."""
    try:
        keys = load_login_keys(inventory, home, ssh_dir=Path.home() / ".ssh")
    except NodeFailure as e:
        raise NotReached(e.message) from e
    return RemoteCommand(
        inventory=inventory, nodes=nodes, line=line, keys=keys, deadlines=deadlines, timeout_s=timeout_s
    )


def run_on_one(remote: RemoteCommand, output: Output, *, as_json: bool) -> int:
    """The command's own exit code; its output raw, this process's stdin passed on. Raises NotReached."""
    (node,) = remote.nodes
    if as_json:
        result = _run(remote)[node.slot]
        output.json(node_result_json(result), is_line=True)
    else:
        sinks = NodeSinks(
            stdout=lambda _, chunk: output.data_bytes(chunk), stderr=lambda _, chunk: output.note_bytes(chunk)
        )
        stdin = None if sys.stdin is None else sys.stdin.buffer
        result = _run(remote, sinks=sinks, stdin=stdin)[node.slot]
    if result.failure is not None:
        raise not_reached(result.failure, name=node.name, slot=node.slot, cluster=remote.inventory.cluster)
    return result.exit_code or 0


def run_on_several(remote: RemoteCommand, output: Output, *, as_json: bool) -> int:
    """0 when every node ended with 0, else 4 and a summary; stdin is empty on every node."""
    results = _run_json(remote, output) if as_json else _run_prefixed(remote, output)
    summary = failure_summary(results.values())
    if summary is None:
        return 0
    output.note(summary)
    return SomeNodesFailed.exit_code


def read_file(inventory: Inventory, node: InventoryNode, path: str, *, home: Home, deadlines: Deadlines) -> str:
    """The text of a file on one node. Raises NotReached, ClusterctlError when it cannot be read there."""
    remote = remote_command(
        inventory, (node,), f"cat {shlex.quote(path)}", home=home, deadlines=deadlines, timeout_s=READ_S
    )
    result = _run(remote)[node.slot]
    if result.failure is not None:
        raise not_reached(result.failure, name=node.name, slot=node.slot, cluster=inventory.cluster)
    if not result.is_ok:
        said = result.stderr.decode(errors="replace").strip() or f"exit {result.exit_code}"
        raise ClusterctlError(f"{node.name}: {said}", hint=f"clusterctl status --cluster {inventory.cluster}")
    return result.stdout.decode(errors="replace")


def _run_json(remote: RemoteCommand, output: Output) -> dict[int, NodeResult]:
    return _run(remote, on_result=lambda result: output.json(node_result_json(result), is_line=True))


def _run_prefixed(remote: RemoteCommand, output: Output) -> dict[int, NodeResult]:
    stdout = {node.slot: LinePrefixer(node.name, output.data_bytes) for node in remote.nodes}
    stderr = {node.slot: LinePrefixer(node.name, output.note_bytes) for node in remote.nodes}

    def finish(result: NodeResult) -> None:
        stdout[result.slot].finish()
        stderr[result.slot].finish()
        if result.failure is not None:
            output.note(f"[{result.name}] {result.failure.message}")

    sinks = NodeSinks(
        stdout=lambda node, chunk: stdout[node.slot].feed(chunk),
        stderr=lambda node, chunk: stderr[node.slot].feed(chunk),
    )
    return _run(remote, sinks=sinks, on_result=finish)


def _run(
    remote: RemoteCommand,
    *,
    sinks: NodeSinks | None = None,
    stdin: IO[bytes] | None = None,
    on_result: Callable[[NodeResult], None] | None = None,
) -> dict[int, NodeResult]:
    return run_on_nodes(
        remote.inventory,
        remote.nodes,
        remote.line,
        keys=remote.keys,
        deadlines=remote.deadlines,
        timeout_s=remote.timeout_s,
        stdin=stdin,
        sinks=sinks,
        on_result=on_result,
    )
