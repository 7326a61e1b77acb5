"""Buying a capacity block, and finding those that were bought for a cluster.

A purchase is paid at once and cannot be undone. The request takes no token by which AWS would recognise a repetition,
so it is sent once; what became of a request without an answer is looked up by the tags that it carried.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError, ConnectTimeoutError, EndpointConnectionError, NoCredentialsError
from clusterctl_infra.names import ID_TAG, OWNER_TAG, PURCHASE_TAG, PURCHASED_FOR_TAG
from clusterctl_infra.plan.deadline import BLOCK_MARGIN

from clusterctl.cloud.adopted_capacity import BLOCK_RESERVATION_TYPE, PLATFORM, FoundCapacity, found_capacity
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.instances import tags_of
from clusterctl.cloud.refusal import aws_errors

if TYPE_CHECKING:
    from types_boto3_ec2.type_defs import TagSpecificationTypeDef

WITHOUT_PLACES = ("expired", "cancelled", "failed", "payment-failed", "unsupported")
"""States of a block that holds nothing any more (EC2 API, CapacityReservation; 2026-11-26)."""
LEAST_LEFT = BLOCK_MARGIN + timedelta(minutes=1)
"""A block that ends sooner takes no machines: AWS is about to end them."""
SHOWN_WITHIN = timedelta(minutes=15)
"""How long a new block may be missing from lists; until then nothing else is bought. A choice: EC2 promises that what
was made is shown, but not when ("Eventual consistency in the Amazon EC2 API"; 2026-11-26)."""

NOT_SENT = (NoCredentialsError, EndpointConnectionError, ConnectTimeoutError)
"""botocore's errors from before anything was sent (botocore 1.44; 2026-11-26)."""


def purchase_tags(
    own_tags: Mapping[str, str], *, purchase_id: str, cluster: str, owner: str
) -> list[TagSpecificationTypeDef]:
    """The tags of a block: never a cluster's id, since whatever carries one is ended with that cluster.

    `own_tags`: a person's own, from cluster.yaml.
    """
    tags = {**own_tags, PURCHASE_TAG: purchase_id, PURCHASED_FOR_TAG: cluster, OWNER_TAG: owner}
    rows = [{"Key": key, "Value": value} for key, value in tags.items() if key != ID_TAG]
    return [{"ResourceType": "capacity-reservation", "Tags": rows}]  # type: ignore[typeddict-item]


def blocks_of(clients: Clients, cluster: str, *, ids: Collection[str], now: datetime) -> tuple[FoundCapacity, ...]:
    """The blocks that were bought for the cluster called `cluster`, or are in `ids`, and still last; by their start.

    All reservations are asked for: the call documents no filter by tag. Raises CloudError.
    """
    with aws_errors(f"looking for capacity blocks of {cluster}"):
        pages = clients.ec2.get_paginator("describe_capacity_reservations").paginate()
        rows = [row for page in pages for row in page["CapacityReservations"]]
    own = [
        found_capacity(row)
        for row in rows
        if row.get("ReservationType") == BLOCK_RESERVATION_TYPE
        and (row["CapacityReservationId"] in ids or tags_of(row.get("Tags")).get(PURCHASED_FOR_TAG) == cluster)
    ]
    lasting = [block for block in own if lasts(block, now=now)]
    return tuple(sorted(lasting, key=lambda block: (block.starts_at or now, block.reservation_id)))


def lasts(block: FoundCapacity, *, now: datetime) -> bool:
    """Whether machines can still run in it, now or later."""
    return block.state not in WITHOUT_PLACES and (block.ends_at is None or block.ends_at > now + LEAST_LEFT)


def buy(clients: Clients, offering_id: str, tags: list[TagSpecificationTypeDef]) -> str:
    """Buys the offering, asking AWS only once; returns the block's id.

    Raises botocore's errors: `is_refused` tells whether one means that nothing was bought.
    """
    answer = clients.ec2_once.purchase_capacity_block(
        CapacityBlockOfferingId=offering_id, InstancePlatform=PLATFORM, TagSpecifications=tags
    )
    return str(answer["CapacityReservation"]["CapacityReservationId"])


def is_refused(error: BaseException | None) -> bool:
    """Whether nothing was bought: AWS said no, or the request was never sent. After any other error, a block may have
    been bought.
    """
    if isinstance(error, NOT_SENT):
        return True
    if not isinstance(error, ClientError):
        return False
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return 400 <= status < 500
