"""What is said where AWS was not even asked: the credentials of this computer are none."""

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
        (EndpointConnectionError(endpoint_url="https://sts.us-west-2.amazonaws.com/"), None),
    ],
)
def test_what_is_wrong_with_credentials_names_the_command_that_shows_or_mends_it(
    error: BotoCoreError, hint: str | None
) -> None:
    with pytest.raises(CloudError, match="asking AWS for the time: ") as said, aws_errors("asking AWS for the time"):
        raise error
    assert said.value.hint == hint
