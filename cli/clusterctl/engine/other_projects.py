"""A stack's state under another project's name: what is left behind when Pulumi.yaml's `name:` is changed."""

from __future__ import annotations

import json
from pathlib import Path

from clusterctl.engine.backend import folder_of
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import parse_state


def project_that_holds(backend_url: str, stack: Stack, *, cluster_id: str) -> str | None:
    """The other project whose stack of the same name holds this cluster; None where the backend's files name none."""
    root = folder_of(backend_url)
    if root is None:
        return None
    for file in sorted((root / "stacks").glob(f"*/{stack.name}.json")):
        if file.parent.name != stack.project and _cluster_id(file) == cluster_id:
            return file.parent.name
    return None


def _cluster_id(file: Path) -> str | None:
    try:
        checkpoint = json.loads(file.read_bytes())["checkpoint"]["latest"]
        return parse_state(json.dumps({"deployment": checkpoint})).cluster_id
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
