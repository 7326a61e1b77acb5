"""A thing in AWS that carries a cluster's id, and the kinds of things there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from clusterctl.cloud.clients import Clients


@dataclass(frozen=True, kw_only=True)
class Found:
    """One thing that exists."""

    kind: str
    """As a person says it: `instance`, `elastic IP`."""
    id: str
    aliases: frozenset[str] = frozenset()
    """Other names under which a state may know it."""
    attached_to: str | None = None
    """It lives and dies with this other thing."""
    parent: str | None = None
    """The thing it is part of, needed to delete it."""
    created_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How things of one kind are found by the cluster's id, and ended."""

    name: str
    find: Callable[[Clients, str], Iterable[Found]]
    delete: Callable[[Clients, Found], None]
    """Raises botocore's ClientError; a thing that is gone already is the caller's to forgive."""
    bills: str | None
    """What it costs for as long as it exists; None when nothing."""
    is_data: bool = False
    """It holds what people made: never deleted by a repair unless the broken run itself made it."""


def orphans(found: Iterable[Found], known: frozenset[str]) -> tuple[Found, ...]:
    """What no state knows, and what is not part of something that a state knows."""
    return tuple(
        one
        for one in found
        if one.id not in known
        and not (one.aliases & known)
        and (one.attached_to is None or one.attached_to not in known)
    )
