"""The output of nodes while a group runs a command: kept for the results, and shown with the nodes' names before it."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from clusterctl_infra.outputs import InventoryNode

from clusterctl.node_group.options import RunOptions
from clusterctl.ssh.fanout.sinks import NodeSink, NodeSinks
from clusterctl.ssh.on_nodes import LinePrefixer


class ShownOutput:
    """The output of all nodes of one command; used by one thread."""

    def __init__(self, nodes: Sequence[InventoryNode], options: RunOptions) -> None:
        streams = {"stdout": options.out_stream or sys.stdout, "stderr": options.err_stream or sys.stderr}
        self._kept = {name: {node.slot: bytearray() for node in nodes} for name in streams}
        self._shown = {
            name: {node.slot: LinePrefixer(node.name, _decoder(stream, options.encoding)) for node in nodes}
            for name, stream in streams.items()
            if name not in options.hidden
        }

    @property
    def sinks(self) -> NodeSinks:
        """The streams that the fan-out writes each node's output to."""
        return NodeSinks(stdout=self._sink("stdout"), stderr=self._sink("stderr"))

    def finish(self, slot: int) -> None:
        """Notes that the node has ended, and shows a last line that has no newline."""
        for lines in self._shown.values():
            lines[slot].finish()

    def output(self, slot: int) -> Mapping[str, bytes]:
        """`stdout` and `stderr` → all that the node has written there."""
        return {name: bytes(by_slot[slot]) for name, by_slot in self._kept.items()}

    def _sink(self, name: str) -> NodeSink:
        kept, shown = self._kept[name], self._shown.get(name)

        def put(node: InventoryNode, chunk: bytes) -> None:
            kept[node.slot] += chunk
            if shown is not None:
                shown[node.slot].feed(chunk)

        return put


def _decoder(stream: TextIO, encoding: str) -> Callable[[bytes], None]:
    """A function that writes bytes to `stream` as text, even a character that is split between two chunks."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    shown_in = stream.encoding or "utf-8"  # may lack characters of a node's output; a StringIO has none

    def write(chunk: bytes) -> None:
        stream.write(decoder.decode(chunk).encode(shown_in, "replace").decode(shown_in))
        stream.flush()

    return write
