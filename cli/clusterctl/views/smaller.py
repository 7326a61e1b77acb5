"""The nodes that a smaller cluster ends, and where its size was said. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from clusterctl.node_set import fold_names
from clusterctl.views.quantities import count


def size_said_in(*, source: str, stack_name: str, overrides: Mapping[str, str], is_flag: bool = False) -> str:
    """What gave the number of nodes: `--nodes`, the stack's config, or else the file, called `source`."""
    if is_flag:
        return "--nodes"
    return f"clusterctl:nodes in Pulumi.{stack_name}.yaml" if "nodes" in overrides else source


def ends_line(names: Iterable[str], *, nodes: int, said_in: str) -> str | None:
    """`train-[2-3]: cluster.yaml says 2 nodes`; None where no node is ended."""
    folded = fold_names(names)
    return f"{folded}: {said_in} says {count(nodes, 'node')}" if folded else None
