"""The line about a number of nodes that cluster.yaml does not give: what gave it, and what ends it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl_infra.config.flag_size import NODES, NODES_OVER, has_ended

from clusterctl.text.quantities import count


def size_note(values: Mapping[str, str], *, in_file: str | None, source: str, config: str, shown: str) -> str | None:
    """`6 nodes, by --nodes of an up; stacks/train/cluster.yaml says 4. …`; None where the file gives the size.

    `values`: of the stack's config, which is called `config`; `source`: the file; `shown`: the stack behind `up`.
    """
    given = values.get(NODES)
    if given is None or in_file is None or given == in_file:
        return None
    by_flag = NODES_OVER in values
    if by_flag and has_ended(values, in_file=in_file):
        return f"{source} says {_nodes(in_file)} now, which ends the {given} of an earlier --nodes"
    by = "by --nodes of an up" if by_flag else f"by clusterctl:nodes in {config}"
    ends = f"clusterctl up {shown} --nodes {in_file}"
    ends += f", or another number in {source}" if by_flag else ""
    return f"{_nodes(given)}, {by}; {source} says {in_file}. What ends that: {ends}"


def _nodes(text: str) -> str:
    return count(int(text), "node") if text.isascii() and text.isdigit() else f"{text} nodes"
