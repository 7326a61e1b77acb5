"""What is said where AWS could not be asked, or its answer is not one of AWS."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any  # what botocore hands to its handlers

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOTokenLoadError,
    TokenRetrievalError,
    UnauthorizedSSOTokenError,
)
from botocore.parsers import ResponseParserError
from clusterctl.cloud.answers import MOST_PAGES, answered
from clusterctl.cloud.clients import AwsClients
from clusterctl.cloud.instances import instances_of
from clusterctl.cloud.refusal import aws_errors
from clusterctl_infra.errors import CloudError

STS = "https://sts.us-west-2.amazonaws.com/"


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (NoCredentialsError(), "aws configure"),
        (ProfileNotFound(profile="work"), "aws configure list-profiles"),
        (ClientError({"Error": {"Code": "ExpiredToken", "Message": "ended"}}, "GetCallerIdentity"), "aws sso login"),
        (UnauthorizedSSOTokenError(), "aws sso login"),
        (SSOTokenLoadError(error_msg="Token for work does not exist"), "aws sso login"),
        (TokenRetrievalError(provider="sso", error_msg="Token has expired and refresh failed"), "aws sso login"),
        (PartialCredentialsError(provider="env", cred_var="aws_secret_access_key"), "aws configure list"),
        (CredentialRetrievalError(provider="custom-process", error_msg="not found"), "aws configure list"),
        (EndpointConnectionError(endpoint_url="http://127.0.0.1:41487/"), "clusterctl rehearse list"),
        (EndpointConnectionError(endpoint_url=STS), f"curl -sSI {STS}"),
        (ConnectTimeoutError(endpoint_url=STS), f"curl -sSI {STS}"),
    ],
)
def test_what_kept_the_question_from_aws_has_the_command_that_shows_or_mends_it(
    error: BotoCoreError | ClientError, hint: str | None
) -> None:
    with (
        pytest.raises(CloudError, match=r"asking AWS for the time(: |\): )") as caught,
        aws_errors("asking AWS for the time"),
    ):
        raise error
    assert caught.value.hint == hint


@pytest.mark.parametrize(("url", "is_asked"), [(STS, True), ("http://127.0.0.1:41487/", False)])
def test_where_aws_is_not_reached_the_network_and_the_proxy_are_thought_of(url: str, is_asked: bool) -> None:
    with pytest.raises(CloudError) as caught, aws_errors("asking AWS for the time"):
        raise EndpointConnectionError(endpoint_url=url)
    assert caught.value.message.endswith("Behind a proxy, set HTTPS_PROXY") is is_asked


def test_a_page_of_a_proxy_is_told_in_a_sentence_and_not_shown() -> None:
    message = "asking: the answer is not from AWS; a proxy may have sent a page of its own"
    with pytest.raises(CloudError) as caught, aws_errors("asking"):
        raise ResponseParserError("Unable to parse response, invalid XML received: b'<!doctype html>\n<html lang=en>'")
    assert (caught.value.message, caught.value.code) == (message, "ResponseParserError")


def test_an_answer_without_a_field_names_the_field_and_what_was_asked() -> None:
    answer = answered({"Reservations": [{"Instances": [{"State": {}}]}]})
    with pytest.raises(CloudError, match="the answer has no 'InstanceId'") as caught, aws_errors("asking for machines"):
        answer["Reservations"][0]["Instances"][0]["InstanceId"]
    assert (caught.value.code, caught.value.message.partition(": ")[0]) == ("OddAnswer", "asking for machines")


def test_a_mistake_of_our_own_is_not_told_as_an_odd_answer_of_aws() -> None:
    own: dict[str, str] = {}
    with pytest.raises(KeyError, match="slot"), aws_errors("asking for machines"):
        own["slot"]


class Body:
    """An answer about a machine without its state."""

    def stream(self) -> list[bytes]:
        item = b"<item><instancesSet><item><instanceId>i-1</instanceId></item></instancesSet></item>"
        return [
            b"<DescribeInstancesResponse><reservationSet>" + item + b"</reservationSet></DescribeInstancesResponse>"
        ]


def test_what_aws_left_out_is_named_as_boto3_reads_it() -> None:
    clients = AwsClients(region="us-west-2", endpoint_url="http://127.0.0.1:9")
    headers: Any = {"date": "Sat, 21 Nov 2020 20:00:00 GMT"}

    def answer(**_: Any) -> Any:
        return AWSResponse("http://127.0.0.1:9", 200, headers, Body())

    clients.ec2.meta.events.register("before-send.ec2", answer)
    with pytest.raises(CloudError, match="the answer has no 'State', which AWS always sends"):
        instances_of(clients, "0123456789ab")
    assert clients.wrong_by is not None
    assert clients.wrong_by > datetime(2026, 11, 1, tzinfo=UTC) - datetime(2020, 11, 22, tzinfo=UTC)


def test_fresh_tokens_without_an_end_end_the_question() -> None:
    clients = AwsClients(region="us-west-2", endpoint_url="http://127.0.0.1:9")
    asked: list[str] = []
    headers: Any = {}

    def next_page(**event: Any) -> Any:
        asked.append(event["model"].name)
        return AWSResponse("http://127.0.0.1:9", 200, headers, None), {"Reservations": [], "NextToken": str(len(asked))}

    clients.ec2.meta.events.register("before-call.ec2", next_page)
    with pytest.raises(CloudError, match="goes on after 1000 pages") as caught, aws_errors("asking"):
        instances_of(clients, "0123456789ab")
    assert (len(asked), caught.value.code) == (MOST_PAGES + 1, "EndlessPages")


def test_a_token_that_comes_twice_ends_the_question() -> None:
    clients = AwsClients(region="us-west-2", endpoint_url="http://127.0.0.1:9")
    asked: list[str] = []
    headers: Any = {}

    def same_page(**event: Any) -> Any:
        asked.append(event["model"].name)
        return AWSResponse("http://127.0.0.1:9", 200, headers, None), {"Reservations": [], "NextToken": "again"}

    clients.ec2.meta.events.register("before-call.ec2", same_page)
    with pytest.raises(CloudError, match="token was received twice") as caught, aws_errors("asking"):
        list(clients.ec2.get_paginator("describe_instances").paginate())
    assert (len(asked), caught.value.code) == (2, "PaginationError")
