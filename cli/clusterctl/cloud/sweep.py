"""Ends what carries a cluster's id and is in no state, until nothing more appears."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import ClientError
from clusterctl_infra.errors import CloudError
from clusterctl_infra.names import ID_TAG

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.found import Found, Kind, Known, kind_of, orphans
from clusterctl.cloud.kinds import KINDS
from clusterctl.cloud.refusal import aws_errors, code_of

LOOKS = 2
"""So many looks in a row have to find nothing: what a killed engine asked for may still be on its way."""
NOT_ENDED = "NotEnded"
"""The code of the error about things that AWS did not let go in time."""
FORGIVEN = ("NotFound", "NoSuchEntity", "Malformed")
PARALLEL_LOOKS = 8


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What was ended, and what was left because it holds data."""

    ended: tuple[Found, ...]
    left: tuple[Found, ...]


def look(clients: Clients, cluster_id: str, kinds: Sequence[Kind] = KINDS) -> tuple[Found, ...]:
    """Everything that carries the id, in the order in which it would be ended. Raises CloudError."""
    with aws_errors(f"looking for what belongs to {cluster_id}"):
        clients.warm_up()
        with ThreadPoolExecutor(max_workers=PARALLEL_LOOKS) as pool:
            lists = pool.map(lambda kind: list(kind.find(clients, cluster_id)), kinds)
            return tuple(found for one in lists for found in one)


def sweep(
    clients: Clients,
    cluster_id: str,
    known: Known,
    *,
    data_since: datetime | None,
    pause: Callable[[], None],
    timeout_s: float,
    tell: Callable[[str], None],
    kinds: Sequence[Kind] = KINDS,
) -> Sweep:
    """Ends all orphans; data only when made after `data_since`. Raises CloudError, also when time is over."""
    give_up = time.monotonic() + timeout_s
    ended: dict[tuple[str, str], Found] = {}
    refused: dict[tuple[str, str], str] = {}
    quiet = 0
    while True:
        lost = orphans(look(clients, cluster_id, kinds), known, kinds)
        kept = tuple(one for one in lost if _is_kept(one, data_since, kinds))
        rest = [one for one in lost if one not in kept]
        quiet = 0 if rest else quiet + 1
        if quiet >= LOOKS:
            return Sweep(ended=tuple(ended.values()), left=kept)
        if time.monotonic() > give_up and all(_key(one) in ended for one in rest):
            named = ", ".join(
                f"{one.kind} {one.id}" + (f" ({refused[_key(one)]})" if _key(one) in refused else "") for one in rest
            )
            told = f"not ended in {timeout_s:.0f} s: {named}; the same command again goes on with it"
            raise CloudError(told, code=NOT_ENDED, hint=_look_by_hand(clients, cluster_id))
        for one in rest:
            if _key(one) not in ended:
                tell(f"{one.kind} {one.id}")
            if (code := _end(clients, one, kinds)) is not None:
                refused[_key(one)] = code
            ended[_key(one)] = one
        pause()


def _look_by_hand(clients: Clients, cluster_id: str) -> str:
    """The command that lists what carries the id."""
    if clients.is_rehearsal:
        return "clusterctl rehearse list"
    words = f"--region {clients.region} --tag-filters Key={ID_TAG},Values={cluster_id}"
    return f"aws resourcegroupstaggingapi get-resources {words}"


def _key(one: Found) -> tuple[str, str]:
    return one.kind, one.id


def _is_kept(one: Found, data_since: datetime | None, kinds: Sequence[Kind]) -> bool:
    if not kind_of(one, kinds).is_data:
        return False
    return data_since is None or one.created_at is None or one.created_at < data_since


def _end(clients: Clients, one: Found, kinds: Sequence[Kind]) -> str | None:
    """AWS's code when it refused for now, such as DependencyViolation while an instance is still ending."""
    try:
        kind_of(one, kinds).delete(clients, one)
    except ClientError as e:
        code = code_of(e)
        return None if any(word in code for word in FORGIVEN) else code
    return None
