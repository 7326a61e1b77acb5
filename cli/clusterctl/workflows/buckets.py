"""Where a URL of a workflow is on a node: below the mount of a bucket. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any  # JSON

from clusterctl.workflows.model import Workflow
from clusterctl.workflows.tokens import ANYWHERE

S3 = "s3"
S3_URL = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?")
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
NOT_BUILT = "not built yet"


@dataclass(frozen=True, kw_only=True)
class BucketMount:
    """A bucket, or the part of it below a prefix, as every node has it mounted."""

    path: str
    bucket: str
    prefix: str
    """Empty, or it ends in a slash."""
    is_writable: bool


def bucket_mounts(rows: Iterable[Mapping[str, Any]]) -> tuple[BucketMount, ...]:
    """The buckets among a node's mounts; `rows` are the mounts as the node's plan lists them."""
    found = []
    for row in rows:
        if row["kind"] == S3:
            bucket, _, prefix = str(row["source"]).partition("/")
            found.append(
                BucketMount(path=str(row["path"]), bucket=bucket, prefix=prefix, is_writable=bool(row["writable"]))
            )
    return tuple(found)


def url_problem(url: str) -> str | None:
    """Why no task can use this URL, whatever the cluster mounts; None if it could."""
    scheme = SCHEME.match(url)
    if scheme is None or scheme[1] != S3:
        what = f"{scheme[1]}:// is" if scheme is not None else "other addresses are"
        return f"{url!r}: {what} {NOT_BUILT}; write s3://BUCKET/PATH"
    found = S3_URL.fullmatch(url)
    if found is None:
        return f"{url!r}: write s3://BUCKET/PATH, the bucket's name without tokens"
    parts = (found[2] or "").rstrip("/").split("/")
    if not url.isprintable() or any(part in (".", "..") for part in parts) or "" in parts[:-1]:
        return f"{url!r}: write a path without . and .. and empty parts"
    return None


def mounted_path(url: str, mounts: Sequence[BucketMount], *, is_written: bool) -> str | None:
    """The path of the URL's file or folder on a node, with its tokens unresolved.

    None if no mount covers it, or, with `is_written`, no writable mount.
    """
    found = S3_URL.fullmatch(url)
    if found is None:
        return None
    key = (found[2] or "").rstrip("/")
    fitting = [
        mount
        for mount in mounts
        if mount.bucket == found[1]
        and (mount.is_writable or not is_written)
        and (_fixed_part(key) + "/").startswith(mount.prefix)
    ]
    if not fitting:
        return None
    best = max(fitting, key=lambda mount: (len(mount.prefix), mount.is_writable))
    return f"{best.path}/{key[len(best.prefix) :]}".rstrip("/")


def unmounted(workflow: Workflow, mounts: Sequence[BucketMount]) -> Iterator[str]:
    """A sentence for each URL that no mount covers, or that a task writes to and nodes mount read-only."""
    for task in workflow.all_tasks():
        inputs = [(each.url, False) for each in task.inputs if each.url is not None]
        outputs = [(each.url, True) for each in task.outputs if each.url is not None]
        checkpoints = [(each.url, True) for each in task.checkpoint]
        for url, is_written in (*inputs, *outputs, *checkpoints):
            if mounted_path(url, mounts, is_written=is_written) is not None:
                continue
            is_read_only = is_written and mounted_path(url, mounts, is_written=False) is not None
            yield f"task {task.name}: {url}" + (" is mounted read-only" if is_read_only else " is not mounted")


def _fixed_part(key: str) -> str:
    """The part of the key that is the same in every submission: the folders before its first token."""
    token = ANYWHERE.search(key)
    return key if token is None else key[: token.start()].rpartition("/")[0]
