"""The size that `up --nodes` gave a cluster: it holds until cluster.yaml says another number than it said then.

It is kept where a person's own override would be, as `clusterctl:nodes` in the stack's config. Beside it,
`clusterctl:nodes-over` is what the file said. If that is missing, a person wrote the override, and it always holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from clusterctl_infra.config.document import read_document

NODES = "nodes"
NODES_OVER = "nodes-over"
SIZE_KEYS = (NODES, NODES_OVER)


def size_in_file(cluster_file: Path) -> str | None:
    """The value of `nodes:` in cluster.yaml; None if that cannot be read, which is reported elsewhere."""
    try:
        tree = read_document(cluster_file.read_text(encoding="utf-8-sig")).tree
    except (OSError, ValueError):
        return None
    found = tree.get(NODES) if isinstance(tree, dict) else None
    return None if found is None or isinstance(found, (dict, list)) else str(found).strip()


def typed_size(values: Mapping[str, str], nodes: int | None, *, in_file: str | None) -> dict[str, str | None]:
    """What an `up` changes in the stack's config; None removes a value. `nodes`: the number after `--nodes`. Pure."""
    if nodes is not None and str(nodes) != in_file:
        return {NODES: str(nodes), NODES_OVER: in_file}
    is_over = nodes is not None or has_ended(values, in_file=in_file)
    return {key: None for key in SIZE_KEYS if key in values} if is_over else {}


def size_of_one_run(nodes: int) -> dict[str, str | None]:
    """What the stack's config needs for one run of this size, whatever the file or an earlier flag says. Pure."""
    return {NODES: str(nodes), NODES_OVER: None}


def has_ended(values: Mapping[str, str], *, in_file: str | None) -> bool:
    """Whether the size of a flag no longer holds, as the file says another number than when it was typed. Pure."""
    return NODES_OVER in values and in_file is not None and in_file != values[NODES_OVER]


def without_ended_size(
    overrides: Mapping[str, str], nodes_over: str | None, *, in_file: str | None
) -> Mapping[str, str]:
    """The overrides, without a flag's size that no longer holds. Pure."""
    over = {} if nodes_over is None else {NODES_OVER: nodes_over}
    if not has_ended(over, in_file=in_file):
        return overrides
    return {key: value for key, value in overrides.items() if key != NODES}
