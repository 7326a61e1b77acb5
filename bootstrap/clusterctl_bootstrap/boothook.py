"""The boothook of a node: arms the deadline at every boot, before anything can fail."""

from __future__ import annotations

from importlib.resources import files

from clusterctl_bootstrap.node_plan import NodePlan


def boothook(node: NodePlan) -> str:
    """The shell script that cloud-init runs first at every boot, with the guard in it."""
    return _shell("boothook.sh").replace("@GUARD@", guard(node).rstrip("\n"))


def guard(node: NodePlan) -> str:
    """The shell script that arms this node's deadline and closes the metadata service; the boothook keeps it."""
    text = _shell("guard.sh").replace("@LAST_STAGE@", _shell("last_stage.sh").rstrip("\n"))
    values = {
        "CLUSTER_ID": node.cluster_id,
        "GENERATION": str(node.generation),
        "DEADLINE": str(int(node.deadline.timestamp())),
        "IMDS": node.imds,
    }
    for name, value in values.items():
        text = text.replace(f"=@{name}@", f"={value}")
    return text


def _shell(name: str) -> str:
    return (files("clusterctl_bootstrap") / "shell" / name).read_text(encoding="utf-8")
