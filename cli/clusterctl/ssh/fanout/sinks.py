"""Where the output of many nodes goes as it comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clusterctl_infra.outputs import InventoryNode

NodeSink = Callable[[InventoryNode, bytes], None]
"""Called on the caller's thread; whatever it raises ends the whole run."""


@dataclass(frozen=True, kw_only=True)
class NodeSinks:
    """One sink for each stream."""

    stdout: NodeSink
    stderr: NodeSink
