"""Turns what AWS refuses when clusterctl itself asks into one of our errors, with AWS's own code."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)
from botocore.parsers import ResponseParserError
from clusterctl_infra.errors import CloudError

from clusterctl.cloud.answers import NotInAnswer

_OF_CREDENTIALS = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
"""AWS's error codes about the credentials, not the request (EC2 API error codes, IAM common errors; 2026-11-22)."""
_HINTS: tuple[tuple[type[BotoCoreError], str], ...] = (
    (ProfileNotFound, "aws configure list-profiles"),
    (SSOError, "aws sso login"),
    (TokenRetrievalError, "aws sso login"),
    (PartialCredentialsError, "aws configure list"),
    (CredentialRetrievalError, "aws configure list"),
)
"""What helps when botocore found no usable credentials, before AWS was asked (botocore 1.44.5's errors, 2026-11-22)."""
_REHEARSED = "http://127.0.0.1:"
_WHO_IS_ASKING = "aws sts get-caller-identity"
_ENDED = frozenset({"ExpiredToken", "ExpiredTokenException"})
"""The codes for a session whose time is over (IAM, common errors; 2026-11-26). EC2's RequestExpired is not one of them:
it may also mean a wrong clock."""


@contextlib.contextmanager
def aws_errors(doing: str) -> Iterator[None]:
    """Turns botocore's errors into CloudError: `doing` says what was asked."""
    try:
        yield
    except ClientError as e:
        code = code_of(e)
        message = f"{code}: {doing}: {e.response.get('Error', {}).get('Message', '')}"
        if code in _ENDED:
            raise CloudError(f"{message}: log in again", code=code, hint="aws sso login") from e
        raise CloudError(message, code=code, hint=_WHO_IS_ASKING if code in _OF_CREDENTIALS else None) from e
    except NoCredentialsError as e:
        message = f"no AWS credentials on this computer ({doing}): set AWS_PROFILE, or log in, as by aws sso login"
        raise CloudError(message, code="NoCredentials", hint="aws configure") from e
    except BotoCoreError as e:
        raise CloudError(f"{doing}: {e}{_cause(e)}", code=type(e).__name__, hint=_hint(e)) from e
    except ResponseParserError as e:  # no BotoCoreError (botocore 1.44), and it shows the whole page
        message = f"{doing}: the answer is not from AWS; a proxy may have sent a page of its own"
        raise CloudError(message, code=type(e).__name__) from e
    except NotInAnswer as e:
        raise CloudError(f"{doing}: {e.message}", code=e.code) from e


def _cause(error: BotoCoreError) -> str:
    """The most likely cause when no connection to AWS was made; empty for every other error."""
    url = _unreached(error)
    if url is None or url.startswith(_REHEARSED):
        return ""
    return ". Is this computer connected to the internet? Behind a proxy, set HTTPS_PROXY"


def _hint(error: BotoCoreError) -> str | None:
    url = _unreached(error)
    if url is not None and url.startswith(_REHEARSED):
        return "clusterctl rehearse list"  # it shows how to end a server that runs and does not answer
    if url is not None:
        return shlex.join(["curl", "-sSI", url])
    return next((command for kind, command in _HINTS if isinstance(error, kind)), None)


def _unreached(error: BotoCoreError) -> str | None:
    """The address to which no connection could be made; None for other errors."""
    is_unreached = isinstance(error, EndpointConnectionError | ConnectTimeoutError)
    return str(error.kwargs.get("endpoint_url")) if is_unreached else None


def code_of(error: ClientError) -> str:
    """AWS's code, such as InvalidGroup.InUse."""
    return str(error.response.get("Error", {}).get("Code", "Unknown"))
