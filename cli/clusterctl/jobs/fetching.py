"""Files of a job from its nodes to a folder here: one archive from each node, unpacked with care."""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from clusterctl_infra.outputs import InventoryNode

from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.node_program import command
from clusterctl.ssh.command import Command
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.fanout.sinks import NodeSinks
from clusterctl.ssh.results import outcome
from clusterctl.text.quantities import count, thousands

FETCH_S = 3600.0
NO_LIMIT = 1 << 62
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
    def told(self) -> str:
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
) -> list[Fetched]:
    """What each node packs for `words` (job, what, path), unpacked into its `target`; `most_bytes` of it at most."""
    said: dict[int, bytes] = {node.slot: b"" for node in members}
    with ExitStack() as stack:
        archives: Mapping[int, IO[bytes]] = {
            node.slot: stack.enter_context(tempfile.TemporaryFile()) for node in members
        }

        def hear(node: InventoryNode, chunk: bytes) -> None:
            said[node.slot] = (said[node.slot] + chunk)[-MOST_WORDS_BYTES:]

        def write(node: InventoryNode, chunk: bytes) -> None:
            if archives[node.slot].tell() <= most_bytes:  # what is packed is smaller than what is in it
                archives[node.slot].write(chunk)

        results = run_on_nodes(
            nodes.inventory,
            members,
            Command(line=command("pack", *words), timeout_s=timeout_s),
            keys=nodes.keys,
            deadlines=nodes.deadlines,
            pool=nodes.pool,
            sinks=NodeSinks(stdout=write, stderr=hear),
        )
        found = []
        for node in members:
            result = results[node.slot]
            if result.is_ok:
                found.append(unpack(archives[node.slot], node, target(node), most_bytes=most_bytes))
                continue
            last = said[node.slot].decode(errors="replace").strip().splitlines()
            why = outcome(result) if result.failure is None else result.failure.told_under(node.name)
            found.append(Fetched(node=node, error=last[-1].removeprefix("clusterctl: ") if last else why))
        return found


def unpack(archive: IO[bytes], node: InventoryNode, target: Path, *, most_bytes: int = NO_LIMIT) -> Fetched:
    """The archive's files below `target`, with names, kinds and sizes looked at: a node that is hostile made it."""
    archive.seek(0)
    files = size_bytes = 0
    left_out = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=archive, mode="r|gz") as tar:
            for member in tar:
                size_bytes += member.size
                if size_bytes > most_bytes:
                    told = f"more than {thousands(most_bytes)} bytes; the rest was left there"
                    return Fetched(node=node, files=files, size_bytes=size_bytes, error=told)
                try:
                    tar.extract(member, target, filter="data")
                    files += 1
                except tarfile.FilterError:
                    left_out.append(member.name)
    except (OSError, EOFError, tarfile.TarError) as e:
        why = os.strerror(e.errno) if isinstance(e, OSError) and e.errno else str(e) or "it broke off"
        return Fetched(node=node, files=files, size_bytes=size_bytes, error=f"not all came: {why}")
    return Fetched(node=node, files=files, size_bytes=size_bytes, left_out=tuple(left_out))
