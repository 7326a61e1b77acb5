"""The filter by which everything of a cluster is found, and the same where AWS has no such filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from clusterctl_infra.names import ID_TAG

if TYPE_CHECKING:
    from types_boto3_ec2.type_defs import FilterTypeDef


def by_id(cluster_id: str | None) -> FilterTypeDef:
    """What carries this id (None: any); never the name, which a colleague's cluster may share."""
    if cluster_id is None:
        return {"Name": "tag-key", "Values": [ID_TAG]}
    return {"Name": f"tag:{ID_TAG}", "Values": [cluster_id]}


def is_of(tags: Mapping[str, str], cluster_id: str | None) -> bool:
    """Whether these are the tags of something of this cluster (None: of any)."""
    return ID_TAG in tags and cluster_id in (None, tags[ID_TAG])
