"""User-data: what EC2 keeps for one node and cloud-init reads, the same bytes for the same plan."""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Sequence

from clusterctl_bootstrap.boothook import boothook
from clusterctl_bootstrap.cloud_config import cloud_config
from clusterctl_bootstrap.node_plan import NodeAccess, NodePlan

USER_DATA_LIMIT_BYTES = 16_384
"""EC2's limit on raw user-data, before base64 (EC2 User Guide, checked 2026-11)."""
BOUNDARY = "clusterctl-user-data-part"


class UserDataTooLarge(ValueError):
    """The user-data of a node is over EC2's limit; `size_bytes` is what it came to."""

    def __init__(self, name: str, size_bytes: int, scripts_bytes: int) -> None:
        what = f"{size_bytes:,} bytes, {scripts_bytes:,} of them scripts" if scripts_bytes else f"{size_bytes:,} bytes"
        least = "scripts: (let a short one start a long one from shared storage)" if scripts_bytes else "env: or keys"
        super().__init__(f"the user-data of {name} is {what}, EC2 takes {USER_DATA_LIMIT_BYTES:,}: shorten {least}")
        self.size_bytes = size_bytes


def render_user_data(node: NodePlan, access: NodeAccess) -> bytes:
    """Raw user-data: a gzip'd MIME multipart of boothook and cloud-config. Raises UserDataTooLarge."""
    data = _packed(node, access)
    if len(data) > USER_DATA_LIMIT_BYTES:
        without = len(_packed(dataclasses.replace(node, scripts=()), access)) if node.scripts else len(data)
        raise UserDataTooLarge(f"{node.cluster}-{node.slot}", len(data), len(data) - without)
    return data


def multipart(parts: Sequence[tuple[str, str]]) -> str:
    """A MIME multipart of (content type, text) parts, without anything that changes from run to run."""
    body = "".join(
        f'--{BOUNDARY}\nContent-Type: {kind}; charset="utf-8"\nContent-Transfer-Encoding: 8bit\n\n{text}\n'
        for kind, text in parts
    )
    return f'Content-Type: multipart/mixed; boundary="{BOUNDARY}"\nMIME-Version: 1.0\n\n{body}--{BOUNDARY}--\n'


def _packed(node: NodePlan, access: NodeAccess) -> bytes:
    parts = [("text/cloud-boothook", boothook(node)), ("text/cloud-config", cloud_config(node, access))]
    return gzip.compress(multipart(parts).encode(), compresslevel=9, mtime=0)
