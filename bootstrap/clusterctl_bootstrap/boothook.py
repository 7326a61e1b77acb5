"""The boothook of a node: arms the deadline at every boot, before anything can fail (D23)."""

from __future__ import annotations

from importlib.resources import files

from clusterctl_bootstrap.node_plan import NodePlan


def boothook(node: NodePlan) -> str:
    """The shell script with this node's deadline (seconds since 1970) and metadata rule in it."""
    text = (files("clusterctl_bootstrap") / "boothook.sh").read_text(encoding="utf-8")
    return text.replace("@DEADLINE@", str(int(node.deadline.timestamp()))).replace("@IMDS@", node.imds)
