"""Tasks for a cluster, run by Fabric's `fab` in this folder: `fab --list` names them.

They are for the cluster of $CLUSTERCTL_CLUSTER, or the only one that this computer knows.
"""

from __future__ import annotations

import clusterctl
from fabric import task
from invoke.context import Context


@task
def uptime(c: Context) -> None:
    """Prints how long each node has been up."""
    clusterctl.nodes().run("uptime -p || uptime")


@task
def deploy(c: Context, script: str) -> None:
    """Puts a script on every node as ~/train.sh and shows its digest there."""
    nodes = clusterctl.nodes()
    nodes.put(script, "train.sh")
    nodes.run("sha256sum train.sh")


@task
def check(c: Context) -> None:
    """Names the nodes that do not have the script of slot 0."""
    nodes = clusterctl.nodes()
    digests = {node: result.stdout for node, result in nodes.run("sha256sum train.sh", hide=True).items()}
    others = [node.node.name for node, digest in digests.items() if digest != digests[nodes[0]]]
    print("differs:", *others) if others else print(f"{len(nodes)} nodes have the same script")
