"""A command on nodes whose output is kept until it is shown: gathered, or as JSON."""

from __future__ import annotations

import base64
import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from clusterctl_infra.outputs import InventoryNode

from clusterctl.output import Output
from clusterctl.ssh.failures import NodeFailure, node_failure_json
from clusterctl.ssh.fanout.output_spool import OutputSpool, Spooled
from clusterctl.ssh.new_links import Links
from clusterctl.ssh.remote_command import RemoteCommand
from clusterctl.ssh.results import NodeResult
from clusterctl.text.node_set import fold_names


def run_json(remote: RemoteCommand, output: Output, links: Links) -> dict[int, NodeResult]:
    """Each node's result by its slot; prints a line of JSON for each as it comes."""
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

        return links.run(remote, sinks=spool.sinks, on_result=show)


def run_gathered(remote: RemoteCommand, output: Output, links: Links) -> dict[int, NodeResult]:
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
            return links.run(remote, sinks=spool.sinks, on_result=note)
        finally:
            # After Ctrl-C, too: shows what the nodes have printed so far.
            for node in remote.nodes:
                if node.name not in reached:
                    failed[node.name] = NodeFailure("stopped", f"{node.name}: its end was not waited for")
            silent = {node.slot for node in remote.nodes if node.name in failed}
            output.data_bytes(render_gathered(_groups(remote.nodes, spool.stdout, silent)))
            output.note_bytes(render_gathered(_groups(remote.nodes, spool.stderr, silent)))
            for name, failure in failed.items():
                output.note(f"[{name}] {failure.message_under(name)}")


def _groups(
    nodes: Iterable[InventoryNode], spooled: dict[int, Spooled], without_result: set[int]
) -> tuple[SameOutput, ...]:
    """Groups of nodes with equal output; a node without a result is in a group only if it printed something."""
    groups: dict[bytes, list[InventoryNode]] = {}
    for node in nodes:
        output = spooled[node.slot]
        if output.length_bytes or node.slot not in without_result:
            groups.setdefault(output.fingerprint, []).append(node)
    return tuple(
        SameOutput(
            names=tuple(node.name for node in members),
            read=spooled[members[0].slot].read,
            is_empty=spooled[members[0].slot].length_bytes == 0,
            is_truncated=spooled[members[0].slot].is_truncated,
        )
        for members in groups.values()
    )


INDENT = b"  "
MOST_DIFF_LINES = 2000
"""The time to compare grows with the square of the length; longer outputs are shown whole."""


@dataclass(frozen=True, kw_only=True)
class SameOutput:
    """Nodes whose output is the same; `read` gives it."""

    names: tuple[str, ...]
    read: Callable[[], bytes]
    is_empty: bool
    is_truncated: bool


def render_gathered(groups: Sequence[SameOutput]) -> bytes:
    """The text of all groups, the largest first; empty when no node printed anything."""
    if all(group.is_empty for group in groups):
        return b""
    ordered = sorted(groups, key=lambda group: -len(group.names))
    majority = ordered[0] if _is_majority(ordered) else None
    common = majority.read() if majority is not None else b""
    parts = []
    for group in ordered:
        is_other = majority is not None and group is not majority
        parts.append(_rendered(group, common=common if is_other else None))
    return b"".join(parts)


def _is_majority(ordered: Sequence[SameOutput]) -> bool:
    """Whether the first group has more than one node, and more than any other group."""
    first = len(ordered[0].names)
    return first > 1 and (len(ordered) == 1 or len(ordered[1].names) < first)


def _rendered(group: SameOutput, *, common: bytes | None) -> bytes:
    output = group.read()
    body, note = _body(output, common)
    head = fold_names(group.names) + (f" ({len(group.names)} nodes)" if len(group.names) > 1 else "") + note
    if group.is_truncated:
        body += INDENT + b"[truncated: there was more]\n"
    return head.encode() + b"\n" + body


def _body(output: bytes, common: bytes | None) -> tuple[bytes, str]:
    """(the indented text under a group's names, what follows the names)."""
    if not output:
        return INDENT + b"(no output)\n", ""
    lines = output.splitlines(keepends=True)
    if common is None or not common:
        return _indented(lines), ""
    if len(lines) == 1:
        text = lines[0].rstrip(b"\r\n")
        return INDENT + text.ljust(48) + "  ← differs\n".encode(), ""
    diff = _diff(output, common)
    if diff is None:
        return _indented(lines), " (differs)"
    return _indented([line.encode() for line in diff]), " (differs: - as most have it, + as it is here)"


def _diff(output: bytes, common: bytes) -> list[str] | None:
    """The lines that differ, with one line around them; None when the whole output tells more, or is no text."""
    try:
        here, there = (text.decode().removesuffix("\n").split("\n") for text in (output, common))
    except UnicodeDecodeError:
        return None
    if max(len(here), len(there)) > MOST_DIFF_LINES:
        return None
    # Each line gets a newline, even the last of an output that has none: or it and the next would be one line.
    diff = [f"{line}\n" for line in difflib.unified_diff(there, here, n=1, lineterm="")][2:]
    return diff if 0 < len(diff) < len(here) else None


def _indented(lines: Sequence[bytes]) -> bytes:
    text = b"".join(INDENT + line for line in lines)
    return text if text.endswith(b"\n") else text + b"\n"


def node_result_json(
    result: NodeResult, *, rank: int, stdout: bytes, stderr: bytes, is_truncated: bool
) -> dict[str, object]:
    """The result as JSON. `exit_code` is null when the command has none, and `error_class` says why; output that is not
    UTF-8 comes in base64 as well."""
    return {
        **node_failure_json(result.name, slot=result.slot, rank=rank, failure=result.failure),
        "exit_code": result.exit_code,
        "signal": result.signal,
        "seconds": round(result.duration_s, 3),
        **_text("stdout", stdout),
        **_text("stderr", stderr),
        "truncated": is_truncated,
    }


def _text(name: str, data: bytes) -> dict[str, str]:
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {name: data.decode(errors="replace"), f"{name}_base64": base64.b64encode(data).decode()}
