"""What is said where AWS was not even asked, as with credentials that are none."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    BotoCoreError,
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
from clusterctl.cloud.refusal import aws_errors
from clusterctl_infra.errors import CloudError


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (NoCredentialsError(), "aws configure"),
        (ProfileNotFound(profile="work"), "aws configure list-profiles"),
        (UnauthorizedSSOTokenError(), "aws sso login"),
        (SSOTokenLoadError(error_msg="Token for work does not exist"), "aws sso login"),
        (TokenRetrievalError(provider="sso", error_msg="Token has expired and refresh failed"), "aws sso login"),
        (PartialCredentialsError(provider="env", cred_var="aws_secret_access_key"), "aws configure list"),
        (CredentialRetrievalError(provider="custom-process", error_msg="not found"), "aws configure list"),
        (EndpointConnectionError(endpoint_url="http://127.0.0.1:41487/"), "clusterctl rehearse list"),
        (EndpointConnectionError(endpoint_url="https://sts.us-west-2.amazonaws.com/"), None),
    ],
)
def test_what_kept_the_question_from_aws_has_the_command_that_shows_or_mends_it(
    error: BotoCoreError, hint: str | None
) -> None:
    with pytest.raises(CloudError, match="asking AWS for the time: ") as said, aws_errors("asking AWS for the time"):
        raise error
    assert said.value.hint == hint


def test_a_page_of_a_proxy_is_told_in_a_sentence_and_not_shown() -> None:
    told = "asking: what answered is not AWS, as where a proxy shows a page of its own"
    with pytest.raises(CloudError) as said, aws_errors("asking"):
        raise ResponseParserError("Unable to parse response, invalid XML received: b'<!doctype html>\n<html lang=en>'")
    assert (said.value.message, said.value.code) == (told, "ResponseParserError")
