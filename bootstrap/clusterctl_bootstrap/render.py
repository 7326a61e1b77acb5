"""User-data: what EC2 keeps for one node and cloud-init reads, the same bytes for the same plan."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Sequence

from clusterctl_bootstrap.boothook import boothook
from clusterctl_bootstrap.cloud_config import cloud_config
from clusterctl_bootstrap.mount_clients import NAME as MOUNT_CLIENTS
from clusterctl_bootstrap.node_plan import NodeAccess, NodePlan

USER_DATA_LIMIT_BYTES = 16_384
"""EC2's limit on raw user-data, before base64 (EC2 User Guide, checked 2026-11)."""
BOUNDARY = "clusterctl-user-data-part"
GZIP_WINDOW = 31
"""zlib's number for a window of 32 KiB in gzip's format (zlib.h, deflateInit2)."""
MEMORY_LEVEL = 6
"""From 1 to 9; zlib's default is 8. The shorter blocks of 6 suit many kinds of text: they save 133 bytes of 16,472."""


class UserDataTooLarge(ValueError):
    """The user-data of a node is over EC2's limit; `size_bytes` is what it came to."""

    def __init__(self, name: str, size_bytes: int) -> None:
        sizes = f"the user-data of {name} is {size_bytes:,} bytes, EC2 takes {USER_DATA_LIMIT_BYTES:,}"
        super().__init__(f"{sizes}: shorten env:, or name fewer keys, packages or scripts")
        self.size_bytes = size_bytes


def render_user_data(node: NodePlan, access: NodeAccess) -> bytes:
    """Raw user-data: a gzip'd MIME multipart of boothook and cloud-config. Raises UserDataTooLarge."""
    data = _packed(fitted(node, access), access)
    if len(data) > USER_DATA_LIMIT_BYTES:
        raise UserDataTooLarge(f"{node.cluster}-{node.slot}", len(data))
    return data


def fitted(node: NodePlan, access: NodeAccess) -> NodePlan:
    """The node; if user-data has no room for its scripts, all of them are marked to be delivered over SSH.

    Only the script that installs the clients of mounts stays: it is the plan's own, and short.
    """
    if not node.scripts or len(_packed(node, access)) <= USER_DATA_LIMIT_BYTES:
        return node
    scripts = (dataclasses.replace(script, is_delivered=script.at != MOUNT_CLIENTS) for script in node.scripts)
    return dataclasses.replace(node, scripts=tuple(scripts))


def multipart(parts: Sequence[tuple[str, str]]) -> str:
    """A MIME multipart of (content type, text) parts, without anything that changes from run to run."""
    body = "".join(
        f'--{BOUNDARY}\nContent-Type: {kind}; charset="utf-8"\nContent-Transfer-Encoding: 8bit\n\n{text}\n'
        for kind, text in parts
    )
    return f'Content-Type: multipart/mixed; boundary="{BOUNDARY}"\nMIME-Version: 1.0\n\n{body}--{BOUNDARY}--\n'


def _packed(node: NodePlan, access: NodeAccess) -> bytes:
    parts = [("text/cloud-boothook", boothook(node)), ("text/cloud-config", cloud_config(node, access))]
    packer = zlib.compressobj(zlib.Z_BEST_COMPRESSION, zlib.DEFLATED, GZIP_WINDOW, MEMORY_LEVEL)
    return packer.compress(multipart(parts).encode()) + packer.flush()
