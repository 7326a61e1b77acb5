"""A purchase is sent once; its failure says whether anything was bought."""

from __future__ import annotations

from typing import Any  # botocore's Config

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError, ReadTimeoutError
from clusterctl.cloud.block_purchase import is_refused
from clusterctl.cloud.clients import AwsClients


def answer(status: int) -> ClientError:
    return ClientError(
        {"Error": {"Code": "X"}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "PurchaseCapacityBlock",
    )


def test_boto_never_sends_a_purchase_again_by_itself() -> None:
    clients = AwsClients(region="us-west-2", endpoint_url="http://127.0.0.1:1")
    once: Any = clients.ec2_once.meta.config  # its type has none of its settings
    usual: Any = clients.ec2.meta.config
    assert once.retries["total_max_attempts"] == 1
    assert usual.retries["total_max_attempts"] == 5
    assert once.proxies == {}, "a rehearsal asks nobody else"


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (answer(400), True),
        (answer(403), True),
        (EndpointConnectionError(endpoint_url="https://x"), True),
        (answer(500), False),
        (answer(503), False),
        (ReadTimeoutError(endpoint_url="https://x"), False),
        (ConnectionClosedError(endpoint_url="https://x"), False),
        (KeyError("CapacityReservation"), False),
        (None, False),
    ],
)
def test_only_where_aws_said_no_or_was_not_asked_is_nothing_bought(error: BaseException | None, refused: bool) -> None:
    assert is_refused(error) == refused
