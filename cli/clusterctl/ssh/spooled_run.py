"""A command on nodes whose output is kept until it is shown: gathered, or as JSON."""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl_infra.outputs import InventoryNode

from clusterctl.output import Output
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.many.output_spool import OutputSpool, Spooled
from clusterctl.ssh.remote_command import RemoteCommand
from clusterctl.ssh.results import NodeResult
from clusterctl.views.gathered import SameOutput, render_gathered
from clusterctl.views.node_result import node_result_json


def run_json(remote: RemoteCommand, output: Output) -> dict[int, NodeResult]:
    """Each node's result by its slot; a line of JSON for each as it comes."""
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


def run_gathered(remote: RemoteCommand, output: Output) -> dict[int, NodeResult]:
    """Each node's result by its slot; equal outputs are shown once, at the end."""
    with OutputSpool(remote.nodes) as spool:
        reached: list[str] = []
        failed: dict[str, NodeFailure] = {}

        def note(result: NodeResult) -> None:
            reached.append(result.name)
            if result.failure is not None:
                failed[result.name] = result.failure
            output.live(f"{len(reached)} of {len(remote.nodes)} nodes have answered")

        try:
            return remote.run(sinks=spool.sinks, on_result=note)
        finally:
            # After Ctrl-C too: what the nodes have said so far.
            for node in remote.nodes:
                if node.name not in reached:
                    failed[node.name] = NodeFailure("stopped", f"{node.name}: its end was not waited for")
            silent = {node.slot for node in remote.nodes if node.name in failed}
            output.data_bytes(render_gathered(_groups(remote.nodes, spool.stdout, silent)))
            output.note_bytes(render_gathered(_groups(remote.nodes, spool.stderr, silent)))
            for name, failure in failed.items():
                output.note(f"[{name}] {failure.told_under(name)}")


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
