"""Checks that a request is signed with one of the region's key pairs, as AWS checks its Signature Version 4.

Source: "Create a signed AWS API request", AWS General Reference, 2026-11. For S3, the path is signed as it was sent.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from urllib.parse import quote

from clusterctl_infra.region_keys import KeyPair

from clusterctl_rehearsal.refusal import AwsError

MAX_SKEW_S = 15 * 60
ALGORITHM = "AWS4-HMAC-SHA256"
_DATE = "X-Amz-Date"
_FORBIDDEN = 403
_AUTHORIZATION = re.compile(
    ALGORITHM + r" +Credential=(?P<key_id>[^/,\s]+)/(?P<scope>(?P<day>\d{8})/[a-z0-9-]+/[a-z0-9-]+/aws4_request), *"
    r"SignedHeaders=(?P<headers>[a-z0-9;-]+), *Signature=(?P<signature>[0-9a-f]{64})",
    re.ASCII,
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request exactly as it was received."""

    method: str
    target: str
    """Path and query."""
    headers: Message
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Authorization:
    """What the header of that name says."""

    scope: str
    """`20260101/us-west-2/ec2/aws4_request`."""
    signed_headers: tuple[str, ...]
    signature: str


def known_authorization(headers: Message, keys: KeyPair) -> Authorization:
    """The request's authorization, if it names the region's key; its signature is not looked at yet.

    Raises AwsError.
    """
    text = headers.get("Authorization")
    if text is None:
        raise AwsError("MissingAuthenticationToken", "Request is missing Authentication Token", status=_FORBIDDEN)
    found = _AUTHORIZATION.fullmatch(text.strip())
    if found is None:
        raise AwsError("IncompleteSignature", "The Authorization header is not one of Signature Version 4", status=400)
    if not hmac.compare_digest(found["key_id"].encode(), keys.access_key_id.encode()):
        message = "The security token included in the request is invalid."
        raise AwsError("InvalidClientTokenId", message, status=_FORBIDDEN)
    return Authorization(
        scope=found["scope"],
        signed_headers=tuple(found["headers"].split(";")),
        signature=found["signature"],
    )


def check_signature(request: Request, authorization: Authorization, keys: KeyPair, *, now: float) -> None:
    """Raises AwsError where the request is not what was signed, or was signed too long ago."""
    date = request.headers.get(_DATE, "")
    missing = {"host", _DATE.lower()} - set(authorization.signed_headers)
    if missing:
        raise _mismatch(f"{', '.join(sorted(missing))} must be a 'SignedHeader' in the AWS Authorization.")
    _check_date(date, authorization.scope, now)
    is_s3 = authorization.scope.split("/")[2:3] == ["s3"]
    canonical = canonical_request(request, authorization.signed_headers, is_s3=is_s3)
    wanted = signature_of(canonical, date=date, scope=authorization.scope, keys=keys)
    claimed = request.headers.get("X-Amz-Content-SHA256")
    is_its_body = claimed is None or claimed == hashlib.sha256(request.body).hexdigest()
    if not is_its_body or not hmac.compare_digest(authorization.signature.encode(), wanted.encode()):
        message = "The request signature we calculated does not match the signature you provided."
        raise _mismatch(f"{message} Check your AWS Secret Access Key and signing method.")


def canonical_request(request: Request, signed_headers: Iterable[str], *, is_s3: bool = False) -> str:
    """The text whose digest is signed. S3 takes a path as it came, since a key may have dots and be encoded."""
    path, _, query = request.target.partition("?")
    pairs = sorted((name, value) for name, _, value in (part.partition("=") for part in query.split("&") if part))
    named = tuple(signed_headers)
    return "\n".join(
        (
            request.method,
            path if is_s3 else quote(_without_dots(path), safe="/~"),
            "&".join(f"{name}={value}" for name, value in pairs),
            *(f"{name}:{_value(request.headers, name)}" for name in named),
            "",
            ";".join(named),
            hashlib.sha256(request.body).hexdigest(),
        )
    )


def signature_of(canonical: str, *, date: str, scope: str, keys: KeyPair) -> str:
    """The signature of a canonical request, in hex."""
    key = b"AWS4" + keys.secret_access_key.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = "\n".join((ALGORITHM, date, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    return hmac.digest(key, text.encode(), "sha256").hex()


def _without_dots(path: str) -> str:
    """`/a//./b/../c/` → `/a/c/` (RFC 3986, 5.2.4)."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts[-1:] = []
        elif part not in ("", "."):
            parts.append(part)
    return f"/{'/'.join(parts)}{'/' if parts and path.endswith('/') else ''}"


def _value(headers: Message, name: str) -> str:
    return ",".join(" ".join(str(value).split()) for value in headers.get_all(name, []))


def _check_date(text: str, scope: str, now: float) -> None:
    try:
        date = datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise _mismatch("Date must be in ISO-8601 'basic format'.") from None
    if not scope.startswith(text[:8]):
        raise _mismatch("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP")
    if abs(date.timestamp() - now) > MAX_SKEW_S:
        is_past = date.timestamp() < now
        reason = "Signature expired" if is_past else "Signature not yet current"
        clock = datetime.fromtimestamp(now, UTC)
        raise _mismatch(f"{reason}: {text} and {clock:%Y%m%dT%H%M%SZ} are more than 15 minutes apart")


def _mismatch(message: str) -> AwsError:
    return AwsError("SignatureDoesNotMatch", message, status=_FORBIDDEN)
