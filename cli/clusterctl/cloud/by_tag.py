"""The filter by which everything of a cluster is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterctl_infra.names import ID_TAG

if TYPE_CHECKING:
    from types_boto3_ec2.type_defs import FilterTypeDef


def by_id(cluster_id: str) -> FilterTypeDef:
    """What carries this id; never the name, which a colleague's cluster may share."""
    return {"Name": f"tag:{ID_TAG}", "Values": [cluster_id]}
