"""What a request asks of S3, read from its query, headers and body; bad ones are refused with S3's messages.

The messages are from the S3 API reference, "Error responses"; it lists none for `InvalidArgument`, whose messages are
those that other stand-ins quote from S3 (s3rver, MinIO; 2026-11-26).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote
from xml.etree import ElementTree

from clusterctl_rehearsal.refusal import AwsError

MOST_KEYS = 1000
MOST_INTEGER = 2_147_483_647
_RANGE = re.compile(r"bytes=(\d*)-(\d*)", re.ASCII)


class InvalidArgument(AwsError):
    """One parameter has a value that S3 does not take."""

    def __init__(self, message: str, argument: str, value: str) -> None:
        super().__init__("InvalidArgument", message)
        self.argument = argument
        self.value = value


@dataclass(frozen=True, kw_only=True)
class S3Request:
    """One request, path style; the names of its headers are in lower case."""

    method: str
    bucket: str
    key: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    region: str

    @classmethod
    def read(cls, method: str, target: str, headers: Mapping[str, str], body: bytes, region: str) -> S3Request:
        """The request that a method and a target make; the target is the path with its query."""
        path, _, query = target.partition("?")
        bucket, _, key = unquote(path).removeprefix("/").partition("/")
        return cls(
            method=method,
            bucket=bucket,
            key=key,
            query={name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()},
            headers={name.lower(): value for name, value in headers.items()},
            body=body,
            region=region,
        )


def page_size(request: S3Request) -> int:
    """How many keys one answer has at most. Raises InvalidArgument."""
    asked = request.query.get("max-keys", "")
    if not asked:
        return MOST_KEYS
    if not re.fullmatch(r"-?\d+", asked, re.ASCII) or len(asked) > len(str(MOST_INTEGER)) + 1:
        raise InvalidArgument("Provided max-keys not an integer or within integer range", "max-keys", asked)
    if not 0 <= int(asked) <= MOST_INTEGER:
        raise InvalidArgument(f"Argument maxKeys must be an integer between 0 and {MOST_INTEGER}", "maxKeys", asked)
    return min(MOST_KEYS, int(asked))


def start_after(request: S3Request) -> str:
    """The key after which the answer begins. Raises InvalidArgument for a token that is not ours."""
    token = request.query.get("continuation-token")
    if token is None:
        return request.query.get("start-after") or request.query.get("marker", "")
    try:
        after = base64.b64decode(token, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        after = ""
    if not after:
        raise InvalidArgument("The continuation token provided is incorrect", "continuation-token", token)
    return after


def token_of(key: str) -> str:
    """The token with which a client continues a listing after a key."""
    return base64.b64encode(key.encode()).decode()


def is_url_encoded(request: S3Request) -> bool:
    """Whether the answer's keys are to be encoded. Raises InvalidArgument."""
    encoding = request.query.get("encoding-type", "")
    if encoding not in ("", "url"):
        raise InvalidArgument("Invalid Encoding Method specified in Request", "encoding-type", encoding)
    return encoding == "url"


def byte_range(request: S3Request, size_bytes: int) -> range | None:
    """Which bytes of an object are asked for; None for all, also where S3 would ignore the header.

    Raises AwsError for bytes that the object does not have.
    """
    found = _RANGE.fullmatch(request.headers.get("range", ""))
    if found is None or not any(found.groups()):
        return None
    first, last = found.groups()
    if not first:  # that many bytes from the end
        wanted = range(max(0, size_bytes - int(last)), size_bytes)
    else:
        wanted = range(int(first), min(size_bytes, int(last) + 1) if last else size_bytes)
    if last and first and int(last) < int(first):
        return None
    if not wanted:
        raise AwsError("InvalidRange", "The requested range is not satisfiable", status=416)
    return wanted


def check_digest(request: S3Request) -> None:
    """Raises AwsError where the body is not what its header `Content-MD5` says."""
    claimed = request.headers.get("content-md5")
    if claimed is None:
        return
    try:
        digest = base64.b64decode(claimed, validate=True)
    except binascii.Error:
        digest = b""
    if len(digest) != hashlib.md5(usedforsecurity=False).digest_size:
        raise AwsError("InvalidDigest", "The Content-MD5 you specified was invalid.")
    if digest != hashlib.md5(request.body, usedforsecurity=False).digest():
        raise AwsError("BadDigest", "The Content-MD5 you specified did not match what we received.")


def check_location(request: S3Request) -> None:
    """Raises AwsError if the body of CreateBucket asks for another region than the one that the request goes to.

    Regions other than us-east-1 require their name in the body (S3 API reference, CreateBucket; 2026-11-26).
    """
    wanted = _location(request.body)
    if request.region == "us-east-1":
        if wanted == "us-east-1":
            raise AwsError("InvalidLocationConstraint", "The specified location-constraint is not valid")
    elif wanted != request.region:
        message = "location constraint is incompatible for the region specific endpoint this request was sent to."
        raise AwsError("IllegalLocationConstraintException", f"The {wanted or 'unspecified'} {message}")


def _location(body: bytes) -> str | None:
    if not body:
        return None
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        root = ElementTree.Element("")
    if _local(root) != "CreateBucketConfiguration":
        message = "The XML you provided was not well-formed or did not validate against our published schema"
        raise AwsError("MalformedXML", message)
    return next((row.text for row in root if _local(row) == "LocationConstraint"), None)


def _local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
