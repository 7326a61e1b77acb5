"""The one node that a command names: reached, or a NotReached that says why and what helps."""

from __future__ import annotations

from clusterctl_infra.errors import NotReached

from clusterctl.ssh.failures import NodeFailure


def not_reached(failure: NodeFailure, *, name: str, slot: int, cluster: str) -> NotReached:
    """The failure as the sentence that ends a command on one node, exit code 255."""
    hint = {
        "host-key": f"clusterctl replace --cluster {cluster} --node {slot}",
        "refused": f"clusterctl status --cluster {cluster}",
        "timeout": f"clusterctl status --cluster {cluster}",
        "unreachable": f"clusterctl status --cluster {cluster}",
        "proxy": f"clusterctl status --cluster {cluster}",
    }.get(failure.kind)
    message = failure.message if name in failure.message else f"{name}: {failure.message}"
    return NotReached(message, hint=hint if failure.phase != "command" else None)
