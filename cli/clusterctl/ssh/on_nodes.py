"""`clusterctl ssh` with a command: on one node as ssh would, on several with names before the lines, or gathered."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from enum import Enum

from clusterctl_infra.errors import ClusterctlError, SomeNodesFailed
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.home import Home
from clusterctl.output import Output
from clusterctl.ssh.command_run import Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.fan_out import NodeSinks
from clusterctl.ssh.output_spool import OutputSpool, Spooled
from clusterctl.ssh.reached import not_reached
from clusterctl.ssh.remote_command import RemoteCommand, usable_keys
from clusterctl.ssh.results import NodeResult, failure_summary
from clusterctl.views.gathered import SameOutput, render_gathered
from clusterctl.views.node_result import node_result_json
from clusterctl.views.prefixed import LinePrefixer

READ_S = 10.0


class Shown(Enum):
    """How the output of several nodes is shown."""

    LIVE = "each line behind its node's name, as it comes"
    GATHERED = "equal outputs once"
    JSON = "one line of JSON per node"


def run_on_one(remote: RemoteCommand, output: Output, *, shown: Shown) -> int:
    """The command's own exit code; its output raw, this process's stdin passed on. Raises NotReached."""
    (node,) = remote.nodes
    if shown is Shown.JSON:
        result = _run_json(remote, output)[node.slot]
    else:
        sinks = NodeSinks(
            stdout=lambda _, chunk: output.data_bytes(chunk), stderr=lambda _, chunk: output.note_bytes(chunk)
        )
        result = remote.run(sinks=sinks)[node.slot]
    if result.failure is not None:
        raise not_reached(result.failure, remote.inventory, node)
    return result.exit_code or 0


def run_on_several(remote: RemoteCommand, output: Output, *, shown: Shown) -> int:
    """0 when every node ended with 0, else 4 and a summary."""
    run = {Shown.LIVE: _run_prefixed, Shown.GATHERED: _run_gathered, Shown.JSON: _run_json}[shown]
    summary = failure_summary(run(remote, output).values())
    if summary is None:
        return 0
    output.note(summary)
    return SomeNodesFailed.exit_code


def read_file(inventory: Inventory, node: InventoryNode, path: str, *, home: Home, deadlines: Deadlines) -> str:
    """The text of a file on one node. Raises NotReached, ClusterctlError when it cannot be read there."""
    remote = RemoteCommand(
        inventory=inventory,
        nodes=(node,),
        command=Command(line=f"cat {shlex.quote(path)}", timeout_s=READ_S),
        keys=usable_keys(inventory, home),
        deadlines=deadlines,
    )
    result = remote.run()[node.slot]
    if result.failure is not None:
        raise not_reached(result.failure, inventory, node)
    if not result.is_ok:
        said = result.stderr.decode(errors="replace").strip() or f"exit {result.exit_code}"
        raise ClusterctlError(f"{node.name}: {said}", hint=f"clusterctl status --cluster {inventory.cluster}")
    return result.stdout.decode(errors="replace")


def _run_json(remote: RemoteCommand, output: Output) -> dict[int, NodeResult]:
    ranks = {node.slot: node.rank for node in remote.nodes}
    with OutputSpool(remote.nodes) as spool:

        def show(result: NodeResult) -> None:
            stdout, stderr = spool.stdout[result.slot], spool.stderr[result.slot]
            line = node_result_json(
                result,
                rank=ranks[result.slot],
                stdout=stdout.read(),
                stderr=stderr.read(),
                is_truncated=stdout.is_truncated or stderr.is_truncated,
            )
            output.json(line, is_line=True)

        return remote.run(sinks=spool.sinks, on_result=show)


def _run_gathered(remote: RemoteCommand, output: Output) -> dict[int, NodeResult]:
    with OutputSpool(remote.nodes) as spool:
        reached: list[str] = []
        failed: list[NodeResult] = []

        def note(result: NodeResult) -> None:
            reached.append(result.name)
            if result.failure is not None:
                failed.append(result)
            output.live(f"{len(reached)} of {len(remote.nodes)} nodes have answered")

        try:
            return remote.run(sinks=spool.sinks, on_result=note)
        finally:
            # After Ctrl-C too: what the nodes have said so far.
            silent = {result.slot for result in failed if result.failure is not None}
            output.data_bytes(render_gathered(_groups(remote.nodes, spool.stdout, silent)))
            output.note_bytes(render_gathered(_groups(remote.nodes, spool.stderr, silent)))
            for result in failed:
                output.note(f"[{result.name}] {result.failure.message if result.failure is not None else ''}")


def _groups(
    nodes: Iterable[InventoryNode], spooled: dict[int, Spooled], without_result: set[int]
) -> tuple[SameOutput, ...]:
    """Nodes with the same output; one without a result counts only for what it did say."""
    groups: dict[bytes, list[InventoryNode]] = {}
    for node in nodes:
        said = spooled[node.slot]
        if said.length_bytes or node.slot not in without_result:
            groups.setdefault(said.fingerprint, []).append(node)
    return tuple(
        SameOutput(
            names=tuple(node.name for node in members),
            read=spooled[members[0].slot].read,
            is_empty=spooled[members[0].slot].length_bytes == 0,
            is_truncated=spooled[members[0].slot].is_truncated,
        )
        for members in groups.values()
    )


def _run_prefixed(remote: RemoteCommand, output: Output) -> dict[int, NodeResult]:
    stdout = {node.slot: LinePrefixer(node.name, output.data_bytes) for node in remote.nodes}
    stderr = {node.slot: LinePrefixer(node.name, output.note_bytes) for node in remote.nodes}

    def finish(result: NodeResult) -> None:
        stdout[result.slot].finish()
        stderr[result.slot].finish()
        if result.failure is not None and result.failure.kind != "stopped":
            output.note(f"[{result.name}] {result.failure.message}")

    sinks = NodeSinks(
        stdout=lambda node, chunk: stdout[node.slot].feed(chunk),
        stderr=lambda node, chunk: stderr[node.slot].feed(chunk),
    )
    return remote.run(sinks=sinks, on_result=finish)
