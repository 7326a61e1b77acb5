"""Fetches files of a job from its nodes to folders here: one archive from each node."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from clusterctl_infra.outputs import InventoryNode

from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.node_program import command
from clusterctl.jobs.unpacking import NO_LIMIT, unpack
from clusterctl.ssh.command import Command
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.fanout.sinks import NodeSinks
from clusterctl.ssh.results import outcome
from clusterctl.text.quantities import count, thousands

FETCH_S = 3600.0
MOST_WORDS_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """What came from one node."""

    node: InventoryNode
    files: int = 0
    size_bytes: int = 0
    error: str | None = None
    left_out: tuple[str, ...] = ()
    """Names of what was not written here, such as a link out of the folder."""

    @property
    def summary(self) -> str:
        """`Node 1 (train-1): 3 files, 1,024 bytes`."""
        where = f"Node {self.node.slot} ({self.node.name}): "
        if self.error is not None:
            return where + self.error
        left = f"; left out: {', '.join(self.left_out[:5])}" if self.left_out else ""
        return f"{where}{count(self.files, 'file')}, {thousands(self.size_bytes)} bytes{left}"


def fetch(
    nodes: JobNodes,
    members: Sequence[InventoryNode],
    words: tuple[str, str, str],
    target: Callable[[InventoryNode], Path],
    *,
    timeout_s: float = FETCH_S,
    most_bytes: int = NO_LIMIT,
    archives_dir: Path | None = None,
) -> list[Fetched]:
    """Has each node pack the files that `words` (job, what, path) name, and unpacks them into `target(node)`.

    `most_bytes`: the most to take from one node. Returns what came from each. Raises OSError where there is no room
    here for the archives.
    """
    errors: dict[int, bytes] = {node.slot: b"" for node in members}
    with ExitStack() as stack:
        archives: Mapping[int, IO[bytes]] = {
            node.slot: stack.enter_context(tempfile.TemporaryFile(dir=archives_dir)) for node in members
        }

        def hear(node: InventoryNode, chunk: bytes) -> None:
            errors[node.slot] = (errors[node.slot] + chunk)[-MOST_WORDS_BYTES:]

        def write(node: InventoryNode, chunk: bytes) -> None:
            write_within(archives[node.slot], chunk, most_bytes)

        results = run_on_nodes(
            nodes.inventory,
            members,
            Command(line=command("pack", *words, str(most_bytes)), timeout_s=timeout_s),
            keys=nodes.keys,
            deadlines=nodes.deadlines,
            pool=nodes.pool,
            sinks=NodeSinks(stdout=write, stderr=hear),
        )
        found = []
        for node in members:
            result = results[node.slot]
            if result.is_ok:
                found.append(_unpacked(archives[node.slot], node, target(node), most_bytes))
                continue
            why = outcome(result) if result.failure is None else result.failure.message_under(node.name)
            found.append(Fetched(node=node, error=_last_line(errors[node.slot]) or why))
        return found


def write_within(archive: IO[bytes], chunk: bytes, most_bytes: int) -> None:
    """Writes as much of the chunk as keeps the archive within `most_bytes`: a node that never stops fills no disk."""
    archive.write(chunk[: max(0, most_bytes - archive.tell())])


def _unpacked(archive: IO[bytes], node: InventoryNode, folder: Path, most_bytes: int) -> Fetched:
    found = unpack(archive, folder, most_bytes=most_bytes)
    return Fetched(
        node=node, files=found.files, size_bytes=found.size_bytes, error=found.error, left_out=found.left_out
    )


def _last_line(errors: bytes) -> str:
    lines = errors.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("clusterctl: ") if lines else ""
