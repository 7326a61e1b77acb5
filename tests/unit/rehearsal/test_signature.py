"""Requests as botocore signs them, and what the region says of those that were changed on their way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from email.message import Message

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from clusterctl_infra.region_keys import KeyPair
from clusterctl_rehearsal.api.signature import MAX_SKEW_S, Request, check_signature, known_authorization
from clusterctl_rehearsal.refusal import AwsError

KEYS = KeyPair(access_key_id="REHEARSALAAAAAAAAAAA", secret_access_key="of this region alone")
HOST = "127.0.0.1:4566"
TARGETS = ["/", "/schedules/a%20b?groupName=x%2By&a=", "//a/./b/../c/", "/?b=2&a=1&a=0"]


def _signed(target: str = "/", body: bytes = b"Action=DescribeVpcs", *, keys: KeyPair = KEYS) -> Request:
    made = AWSRequest(method="POST", url=f"http://{HOST}{target}", data=body, headers={"X-Amz-Target": "  a   b "})
    SigV4Auth(Credentials(keys.access_key_id, keys.secret_access_key), "ec2", "us-west-2").add_auth(made)
    headers = Message()
    headers["Host"] = HOST
    for name, value in made.headers.items():
        headers[name] = value
    return Request(method="POST", target=target, headers=headers, body=body)


def _changed(request: Request, name: str, value: str) -> Request:
    headers = Message()
    for key, old in request.headers.items():
        headers[key] = value if key == name else old
    return replace(request, headers=headers)


def _another_second(date: str) -> str:
    return date[:-2] + ("1Z" if date[-2] == "0" else "0Z")


def _check(request: Request, *, later_s: float = 0) -> None:
    now = datetime.strptime(request.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    check_signature(request, known_authorization(request.headers, KEYS), KEYS, now=now + later_s)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("later_s", [0, MAX_SKEW_S, -MAX_SKEW_S])
def test_what_botocore_signed_with_the_regions_key_pair_is_taken(target: str, later_s: float) -> None:
    _check(_signed(target), later_s=later_s)


@pytest.mark.parametrize(
    "change",
    [
        lambda request: replace(request, body=b"Action=TerminateInstances"),
        lambda request: replace(request, method="DELETE"),
        lambda request: replace(request, target="/other"),
        lambda request: replace(request, target="/?a=1"),
        lambda request: _changed(request, "Host", "127.0.0.1:80"),
        lambda request: _changed(request, "X-Amz-Target", "c"),
        lambda request: _changed(request, "X-Amz-Date", _another_second(request.headers["X-Amz-Date"])),
    ],
)
def test_what_was_changed_after_it_was_signed_is_refused(change: Callable[[Request], Request]) -> None:
    request = change(_signed())
    with pytest.raises(AwsError) as refused:
        _check(request)
    assert refused.value.code == "SignatureDoesNotMatch"


def test_another_secret_of_the_same_key_is_refused() -> None:
    with pytest.raises(AwsError) as refused:
        _check(_signed(keys=replace(KEYS, secret_access_key="a guess")))
    assert (refused.value.code, refused.value.status) == ("SignatureDoesNotMatch", 403)


def test_another_key_is_refused_as_aws_refuses_one_that_no_account_has() -> None:
    guess = replace(KEYS, access_key_id="AKIAIOSFODNN7EXAMPLE")
    with pytest.raises(AwsError) as refused:
        _check(_signed(keys=guess))
    assert (refused.value.code, refused.value.status) == ("InvalidClientTokenId", 403)


@pytest.mark.parametrize(
    ("later_s", "reason"),
    [(MAX_SKEW_S + 1, "Signature expired"), (-MAX_SKEW_S - 1, "Signature not yet current")],
)
def test_a_signature_counts_for_fifteen_minutes(later_s: float, reason: str) -> None:
    with pytest.raises(AwsError, match=f"SignatureDoesNotMatch: {reason}"):
        _check(_signed(), later_s=later_s)


def test_a_body_that_is_not_what_its_digest_says_is_refused() -> None:
    request = _signed()
    request.headers["X-Amz-Content-SHA256"] = "0" * 64
    with pytest.raises(AwsError, match="SignatureDoesNotMatch"):
        _check(request)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, "MissingAuthenticationToken"),
        ("Bearer x", "IncompleteSignature"),
        ("AWS4-HMAC-SHA256 Credential=²/20260101/us-west-2/ec2/aws4_request", "IncompleteSignature"),
        ("AWS4-HMAC-SHA256 " + "Credential=" * 4000, "IncompleteSignature"),
    ],
)
def test_what_is_no_authorization_is_refused(text: str | None, code: str) -> None:
    headers = Message()
    if text is not None:
        headers["Authorization"] = text
    with pytest.raises(AwsError) as refused:
        known_authorization(headers, KEYS)
    assert refused.value.code == code


@pytest.mark.parametrize("left_out", ["host", "x-amz-date"])
def test_a_request_is_refused_whose_host_or_date_is_not_signed(left_out: str) -> None:
    request = _signed()
    authorization = known_authorization(request.headers, KEYS)
    names = tuple(name for name in authorization.signed_headers if name != left_out)
    with pytest.raises(AwsError, match=f"SignatureDoesNotMatch: {left_out} must be"):
        check_signature(request, replace(authorization, signed_headers=names), KEYS, now=0)


@pytest.mark.parametrize("date", ["", "tomorrow", "20260101", "²0260101T000000Z"])
def test_a_date_that_is_none_is_refused(date: str) -> None:
    request = _changed(_signed(), "X-Amz-Date", date)
    with pytest.raises(AwsError, match="SignatureDoesNotMatch"):
        check_signature(request, known_authorization(request.headers, KEYS), KEYS, now=0)
