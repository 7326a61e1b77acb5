"""What is left of clusters, around an instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from clusterctl.cloud.resource import CloudResource
from clusterctl.reap.verdict import KnownHere

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
GRACE = timedelta(minutes=10)
LATE = timedelta(hours=2)
ID = "0123456789ab"
OTHER = "ba9876543210"


def thing(kind: str, id: str, *, cluster: str = ID, deadline: str | None = None, **facts: object) -> CloudResource:
    tags = {"clusterctl:id": cluster, "clusterctl:name": "train", "clusterctl:owner": "ada"}
    if deadline is not None:
        tags["clusterctl:deadline"] = deadline
    return CloudResource(kind=kind, id=id, tags=tags, **facts)  # type: ignore[arg-type]  # a table of facts


def written(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def mine(**facts: object) -> KnownHere:
    return KnownHere(**{"cluster": "train", "deadline": None, "is_down": False, **facts})  # type: ignore[arg-type]
