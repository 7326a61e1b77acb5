"""S3 as a client of this computer sees it: buckets are the folders that nodes' buckets begin with.

What nodes write is in their own server's memory (`storage/buckets.py`), and is not seen here.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape

from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import ACCOUNT_ID

SPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
NAME = re.compile(r"(?!\d+\.\d+\.\d+\.\d+$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
"""Bucket naming rules (S3 User Guide, "General purpose bucket naming rules"; 2026-11-26)."""
MOST_KEYS = 1000


@dataclass(frozen=True, kw_only=True)
class S3Reply:
    """An answer of S3."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class S3Request:
    """One request, path style."""

    method: str
    bucket: str
    key: str
    query: Mapping[str, str]
    body: bytes
    region: str

    @classmethod
    def read(cls, method: str, target: str, body: bytes, region: str) -> S3Request:
        """What a method and a target with its query ask for."""
        path, _, query = target.partition("?")
        bucket, _, key = unquote(path).removeprefix("/").partition("/")
        named = {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()}
        return cls(method=method, bucket=bucket, key=key, query=named, body=body, region=region)


class Buckets:
    """The folders of a home. `known`: the buckets that the settings name; none: every name is one."""

    def __init__(self, folder: Path, known: Callable[[], tuple[str, ...]]) -> None:
        self._folder = folder
        self._known = known

    def answer(self, request: S3Request) -> S3Reply:
        """The answer. Raises AwsError."""
        if not request.bucket:
            return self._all(request)
        what = "key" if request.key else "bucket"
        handler = _HANDLERS.get((what, request.method))
        if handler is None:
            raise AwsError("MethodNotAllowed", "The specified method is not allowed against this resource.", status=405)
        return handler(self, request)

    def has(self, name: str) -> bool:
        """Whether there is the bucket."""
        known = self._known()
        return (self._folder / name).is_dir() or not known or name in known

    def _of(self, request: S3Request) -> Path:
        if not NAME.fullmatch(request.bucket):
            raise AwsError("InvalidBucketName", "The specified bucket is not valid.")
        if not self.has(request.bucket):
            raise AwsError("NoSuchBucket", "The specified bucket does not exist", status=404)
        return self._folder / request.bucket

    def _file(self, request: S3Request) -> Path:
        folder = self._of(request)
        parts = request.key.split("/")
        if any(part in ("", ".", "..") for part in parts[:-1]) or parts[-1] in ("", ".", ".."):
            raise AwsError("NotImplemented", "The stand-in keeps no such key yet (S3 does).", status=501)
        return folder.joinpath(*parts)

    def _found(self, request: S3Request) -> Path:
        file = self._file(request)
        if not file.is_file():
            raise AwsError("NoSuchKey", "The specified key does not exist.", status=404)
        return file

    def _all(self, request: S3Request) -> S3Reply:
        names = sorted(path.name for path in self._folder.iterdir()) if self._folder.is_dir() else []
        rows = "".join(f"<Bucket><Name>{escape(name)}</Name></Bucket>" for name in {*names, *self._known()})
        owner = f"<Owner><ID>{ACCOUNT_ID}</ID></Owner>"
        return _xml(f"<ListAllMyBucketsResult {SPACE}>{owner}<Buckets>{rows}</Buckets></ListAllMyBucketsResult>")

    def _make(self, request: S3Request) -> S3Reply:
        if not NAME.fullmatch(request.bucket):
            raise AwsError("InvalidBucketName", "The specified bucket is not valid.")
        if (self._folder / request.bucket).is_dir():
            told = "Your previous request to create the named bucket succeeded and you already own it."
            raise AwsError("BucketAlreadyOwnedByYou", told, status=409)
        (self._folder / request.bucket).mkdir(parents=True, mode=0o700)
        return S3Reply(headers=(("Location", f"/{request.bucket}"),))

    def _look(self, request: S3Request) -> S3Reply:
        self._of(request)
        return S3Reply(headers=(("x-amz-bucket-region", request.region),))

    def _end(self, request: S3Request) -> S3Reply:
        folder = self._of(request)
        if any(path.is_file() for path in folder.rglob("*")):
            raise AwsError("BucketNotEmpty", "The bucket you tried to delete is not empty", status=409)
        shutil.rmtree(folder, ignore_errors=True)
        return S3Reply(status=204)

    def _list(self, request: S3Request) -> S3Reply:
        folder = self._of(request)
        if "location" in request.query:
            said = "" if request.region == "us-east-1" else request.region
            return _xml(f"<LocationConstraint {SPACE}>{said}</LocationConstraint>")
        prefix, after = request.query.get("prefix", ""), request.query.get("continuation-token", "")
        files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
        keys = sorted(key for key in files if key.startswith(prefix) and key > after)
        shown = keys[: min(MOST_KEYS, int(request.query.get("max-keys", MOST_KEYS)))]
        rows = "".join(_row(key, files[key]) for key in shown)
        more = len(shown) < len(keys)
        token = f"<NextContinuationToken>{escape(shown[-1])}</NextContinuationToken>" if more and shown else ""
        head = f"<Name>{request.bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(shown)}</KeyCount>"
        said = f"{head}<IsTruncated>{str(more).lower()}</IsTruncated>{token}{rows}"
        return _xml(f"<ListBucketResult {SPACE}>{said}</ListBucketResult>")

    def _put(self, request: S3Request) -> S3Reply:
        file = self._file(request)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(request.body)
        return S3Reply(headers=(("ETag", _etag(file)),))

    def _get(self, request: S3Request) -> S3Reply:
        file = self._found(request)
        return S3Reply(body=b"" if request.method == "HEAD" else file.read_bytes(), headers=_described(file))

    def _drop(self, request: S3Request) -> S3Reply:
        """S3 answers this for a key that is not there, too."""
        self._file(request).unlink(missing_ok=True)
        return S3Reply(status=204)


_HANDLERS: Mapping[tuple[str, str], Callable[[Buckets, S3Request], S3Reply]] = {
    ("bucket", "PUT"): Buckets._make,
    ("bucket", "HEAD"): Buckets._look,
    ("bucket", "GET"): Buckets._list,
    ("bucket", "DELETE"): Buckets._end,
    ("key", "PUT"): Buckets._put,
    ("key", "GET"): Buckets._get,
    ("key", "HEAD"): Buckets._get,
    ("key", "DELETE"): Buckets._drop,
}


def refusal_of(error: AwsError, request_id: str) -> S3Reply:
    """An error as S3 writes it."""
    said = f"<Code>{escape(error.code)}</Code><Message>{escape(error.message)}</Message>"
    return S3Reply(status=error.status, body=f"{HEAD}<Error>{said}<RequestId>{request_id}</RequestId></Error>".encode())


def _described(file: Path) -> tuple[tuple[str, str], ...]:
    changed = formatdate(file.stat().st_mtime, usegmt=True)
    length = ("Content-Length", str(file.stat().st_size))
    return (("ETag", _etag(file)), ("Last-Modified", changed), length)


def _row(key: str, file: Path) -> str:
    changed = datetime.fromtimestamp(file.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    facts = (
        f"<LastModified>{changed}</LastModified><ETag>{escape(_etag(file))}</ETag><Size>{file.stat().st_size}</Size>"
    )
    return f"<Contents><Key>{escape(key)}</Key>{facts}<StorageClass>STANDARD</StorageClass></Contents>"


def _etag(file: Path) -> str:
    return f'"{hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest()}"'


def _xml(said: str) -> S3Reply:
    return S3Reply(body=f"{HEAD}{said}".encode())
