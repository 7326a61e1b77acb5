"""The boothook of a node: arms the deadline at every boot, before anything can fail."""

from __future__ import annotations

import re
from importlib.resources import files

from clusterctl_bootstrap.node_plan import NodePlan

COMMENT = re.compile(r"\s*#(?!!| shellcheck )")
"""A comment line; those for shellcheck stay, because it checks the rendered script, too."""


def boothook(node: NodePlan) -> str:
    """The shell script that cloud-init runs first at every boot, with the guard in it."""
    return shell_text("boothook.sh").replace("@GUARD@", guard(node).rstrip("\n"))


def guard(node: NodePlan) -> str:
    """The shell script that arms this node's deadline and restricts the metadata service; the boothook keeps it."""
    text = shell_text("guard.sh").replace("@LAST_STAGE@", shell_text("last_stage.sh").rstrip("\n"))
    values = {
        "CLUSTER_ID": node.cluster_id,
        "GENERATION": str(node.generation),
        "DEADLINE": str(int(node.deadline.timestamp())),
        "IMDS": node.imds,
    }
    for name, value in values.items():
        text = text.replace(f"=@{name}@", f"={value}")
    return text


def shell_text(name: str) -> str:
    """A shell script without comment lines and indentation, which only people who read the source need.

    A first line that names the interpreter stays. No here-document in the scripts needs its indentation.
    """
    text = (files("clusterctl_bootstrap") / "shell" / name).read_text(encoding="utf-8")
    return "".join(line.lstrip(" ") for line in text.splitlines(keepends=True) if not COMMENT.match(line))
