"""S3 as clients on this computer see it: a bucket is a folder. Nodes' buckets start with a copy of its files.

What nodes write stays in the memory of another server (`storage/buckets.py`), and is not seen here.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape

from clusterctl_rehearsal.api.s3_request import (
    InvalidArgument,
    S3Request,
    byte_range,
    check_digest,
    check_location,
    is_url_encoded,
    page_size,
    start_after,
    token_of,
)
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import ACCOUNT_ID

SPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
NAME = re.compile(r"(?!\d+\.\d+\.\d+\.\d+$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
"""Bucket naming rules (S3 User Guide, "General purpose bucket naming rules"; 2026-11-26)."""
MOST_KEY_BYTES = 1024
MOST_NAME_BYTES = 255
"""The limit for each part of a key between slashes, which is a file's name here."""


@dataclass(frozen=True, kw_only=True)
class S3Reply:
    """An answer of S3."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class Buckets:
    """The buckets of a home, each a folder. `known`: returns the names in the settings; none: any name is one."""

    def __init__(self, folder: Path, known: Callable[[], tuple[str, ...]]) -> None:
        self._folder = folder
        self._known = known

    def answer(self, request: S3Request) -> S3Reply:
        """The answer. Raises AwsError."""
        what = "key" if request.key else "bucket" if request.bucket else "account"
        handler = _HANDLERS.get((what, request.method))
        if handler is None:
            raise AwsError("MethodNotAllowed", "The specified method is not allowed against this resource.", status=405)
        _check_known(request, handler)
        return handler(self, request)

    def has(self, name: str) -> bool:
        """Whether the bucket exists."""
        known = self._known()
        return (self._folder / name).is_dir() or not known or name in known

    def _folder_of(self, request: S3Request) -> Path:
        if not NAME.fullmatch(request.bucket):
            raise AwsError("InvalidBucketName", "The specified bucket is not valid.")
        if not self.has(request.bucket):
            raise AwsError("NoSuchBucket", "The specified bucket does not exist", status=404)
        return self._folder / request.bucket

    def _file(self, request: S3Request) -> Path:
        folder = self._folder_of(request)
        if len(request.key.encode()) > MOST_KEY_BYTES:
            raise AwsError("KeyTooLongError", "Your key is too long")
        parts = request.key.split("/")
        if any(part in ("", ".", "..") or "\0" in part or len(part.encode()) > MOST_NAME_BYTES for part in parts):
            raise _no_such_key_here()
        return folder.joinpath(*parts)

    def _found(self, request: S3Request) -> Path:
        file = self._file(request)
        if not file.is_file():
            raise AwsError("NoSuchKey", "The specified key does not exist.", status=404)
        return file

    def _all(self, request: S3Request) -> S3Reply:
        made = [path.name for path in self._folder.iterdir()] if self._folder.is_dir() else []
        names = sorted({*made, *self._known()})
        rows = "".join(f"<Bucket><Name>{escape(name)}</Name></Bucket>" for name in names)
        owner = f"<Owner><ID>{ACCOUNT_ID}</ID></Owner>"
        return _xml(f"<ListAllMyBucketsResult {SPACE}>{owner}<Buckets>{rows}</Buckets></ListAllMyBucketsResult>")

    def _make(self, request: S3Request) -> S3Reply:
        if not NAME.fullmatch(request.bucket):
            raise AwsError("InvalidBucketName", "The specified bucket is not valid.")
        check_location(request)
        if (self._folder / request.bucket).is_dir():
            message = "Your previous request to create the named bucket succeeded and you already own it."
            raise AwsError("BucketAlreadyOwnedByYou", message, status=409)
        (self._folder / request.bucket).mkdir(parents=True, mode=0o700)
        return S3Reply(headers=(("Location", f"/{request.bucket}"),))

    def _look(self, request: S3Request) -> S3Reply:
        self._folder_of(request)
        return S3Reply(headers=(("x-amz-bucket-region", request.region),))

    def _end(self, request: S3Request) -> S3Reply:
        folder = self._folder_of(request)
        if any(path.is_file() for path in folder.rglob("*")):
            raise AwsError("BucketNotEmpty", "The bucket you tried to delete is not empty", status=409)
        shutil.rmtree(folder, ignore_errors=True)
        return S3Reply(status=204)

    def _list(self, request: S3Request) -> S3Reply:
        folder = self._folder_of(request)
        if "location" in request.query:
            location = "" if request.region == "us-east-1" else request.region
            return _xml(f"<LocationConstraint {SPACE}>{location}</LocationConstraint>")
        is_encoded, prefix = is_url_encoded(request), request.query.get("prefix", "")
        files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
        found = _entries(sorted(files), prefix, request.query.get("delimiter", ""), start_after(request))
        shown = found[: page_size(request)]
        is_truncated = bool(shown) and len(shown) < len(found)
        token = f"<NextContinuationToken>{token_of(shown[-1])}</NextContinuationToken>" if is_truncated else ""
        rows = "".join(_row(_written(entry, is_encoded), files.get(entry)) for entry in shown)
        encoding = "<EncodingType>url</EncodingType>" if is_encoded else ""
        head = f"<Name>{request.bucket}</Name><Prefix>{_written(prefix, is_encoded)}</Prefix>{encoding}"
        count = f"<KeyCount>{len(shown)}</KeyCount><IsTruncated>{str(is_truncated).lower()}</IsTruncated>"
        return _xml(f"<ListBucketResult {SPACE}>{head}{count}{token}{rows}</ListBucketResult>")

    def _put(self, request: S3Request) -> S3Reply:
        file = self._file(request)
        check_digest(request)
        _check_conditions(request, file)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(request.body)
        except (FileExistsError, IsADirectoryError, NotADirectoryError) as e:  # a key `a` beside a key `a/b`
            raise _no_such_key_here() from e
        return S3Reply(headers=(("ETag", _etag(file)),))

    def _get(self, request: S3Request) -> S3Reply:
        file = self._found(request)
        _check_conditions(request, file)
        if request.headers.get("if-none-match") == _etag(file):
            return S3Reply(status=304, headers=(("ETag", _etag(file)),))
        content = file.read_bytes()
        part = byte_range(request, len(content))
        shown = content if part is None else content[part.start : part.stop]
        where = () if part is None else (("Content-Range", f"bytes {part.start}-{part.stop - 1}/{len(content)}"),)
        return S3Reply(
            status=200 if part is None else 206,
            body=b"" if request.method == "HEAD" else shown,
            headers=(*_described(file, len(shown)), *where),
        )

    def _drop(self, request: S3Request) -> S3Reply:
        """Deletes a key; S3 answers this for a key that does not exist, too."""
        file = self._file(request)
        if file.is_file():
            file.unlink(missing_ok=True)
        return S3Reply(status=204)


_HANDLERS: Mapping[tuple[str, str], Callable[[Buckets, S3Request], S3Reply]] = {
    ("account", "GET"): Buckets._all,
    ("bucket", "PUT"): Buckets._make,
    ("bucket", "HEAD"): Buckets._look,
    ("bucket", "GET"): Buckets._list,
    ("bucket", "DELETE"): Buckets._end,
    ("key", "PUT"): Buckets._put,
    ("key", "GET"): Buckets._get,
    ("key", "HEAD"): Buckets._get,
    ("key", "DELETE"): Buckets._drop,
}
_LISTING = ("continuation-token", "delimiter", "encoding-type", "fetch-owner", "list-type", "marker", "max-keys")
_QUERIES: Mapping[Callable[[Buckets, S3Request], S3Reply], tuple[str, ...]] = {
    Buckets._list: (*_LISTING, "location", "prefix", "start-after"),
}
_MARK = "x-id"
"""The parameter in which some SDKs name the operation, for their users' logs."""
_REFUSED_HEADERS = ("if-modified-since", "if-unmodified-since", "x-amz-copy-source")


def _check_known(request: S3Request, handler: Callable[[Buckets, S3Request], S3Reply]) -> None:
    """Raises AwsError where a request asks for more than the stand-in does: a copy, a multipart upload, tags."""
    more = [name for name in request.query if name not in (*_QUERIES.get(handler, ()), _MARK)]
    more += [name for name in _REFUSED_HEADERS if name in request.headers]
    if more:
        message = f"The stand-in does not know what {', '.join(sorted(more))} implies yet (S3 does)."
        raise AwsError("NotImplemented", message, status=501)


def _check_conditions(request: S3Request, file: Path) -> None:
    wanted = request.headers.get("if-match")
    is_another = wanted is not None and (not file.is_file() or wanted not in ("*", _etag(file)))
    is_taken = request.method == "PUT" and request.headers.get("if-none-match") == "*" and file.is_file()
    if is_another or is_taken:
        message = "At least one of the pre-conditions you specified did not hold"
        raise AwsError("PreconditionFailed", message, status=412)


def _no_such_key_here() -> AwsError:
    return AwsError("NotImplemented", "The stand-in keeps no such key yet (S3 does).", status=501)


def _entries(keys: Sequence[str], prefix: str, delimiter: str, after: str) -> list[str]:
    """The entries of a listing: keys, and prefixes up to the delimiter that stand for all keys that begin with them."""
    entries: dict[str, None] = {}
    for key in keys:
        is_before = key <= after or (delimiter and after.endswith(delimiter) and key.startswith(after))
        if is_before or not key.startswith(prefix):
            continue
        head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
        entries[f"{prefix}{head}{found}" if found else key] = None
    return list(entries)


def _written(key: str, is_encoded: bool) -> str:
    return quote(key, safe="/") if is_encoded else escape(key)


def refusal_of(error: AwsError, request_id: str) -> S3Reply:
    """An error as S3 writes it."""
    fields = f"<Code>{escape(error.code)}</Code><Message>{escape(error.message)}</Message>"
    if isinstance(error, InvalidArgument):
        fields += f"<ArgumentName>{error.argument}</ArgumentName><ArgumentValue>{escape(error.value)}</ArgumentValue>"
    return S3Reply(
        status=error.status, body=f"{HEAD}<Error>{fields}<RequestId>{request_id}</RequestId></Error>".encode()
    )


def _described(file: Path, length_bytes: int) -> tuple[tuple[str, str], ...]:
    changed = formatdate(file.stat().st_mtime, usegmt=True)
    length = ("Content-Length", str(length_bytes))
    return (("ETag", _etag(file)), ("Last-Modified", changed), length)


def _row(key: str, file: Path | None) -> str:
    """The XML of a key in a listing, or of a common prefix (`file` is None); `key` is escaped or encoded already."""
    if file is None:
        return f"<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>"
    changed = datetime.fromtimestamp(file.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    facts = (
        f"<LastModified>{changed}</LastModified><ETag>{escape(_etag(file))}</ETag><Size>{file.stat().st_size}</Size>"
    )
    return f"<Contents><Key>{key}</Key>{facts}<StorageClass>STANDARD</StorageClass></Contents>"


def _etag(file: Path) -> str:
    return f'"{hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest()}"'


def _xml(content: str) -> S3Reply:
    return S3Reply(body=f"{HEAD}{content}".encode())
