"""Ends what carries a cluster's id and is in no state, until nothing more appears."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError
from clusterctl_infra.errors import CloudError
from clusterctl_infra.names import ID_TAG

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.found import Found, Kind, Known, kind_of, orphans
from clusterctl.cloud.kinds import KINDS
from clusterctl.cloud.machine_kinds import RESERVATION
from clusterctl.cloud.refusal import aws_errors, code_of

LOOKS = 2
"""So many looks in a row have to find nothing: what a killed engine asked for may still be on its way."""
NOT_ENDED = "NotEnded"
"""The code of the error about things that AWS did not let go in time."""
FORGIVEN = ("NotFound", "NoSuchEntity", "Malformed")
HOPELESS = ("Unauthorized", "AccessDenied", "OperationNotPermitted")
"""In codes of refusals that no waiting changes: a right is missing, or the machine is protected against being ended."""
GUARDED = ("instance", RESERVATION)
"""Kinds that a cluster's guard ends at the deadline."""
PARALLEL_LOOKS = 8
Key = tuple[str, str]
Agreed = Callable[[Found], None]
"""Hears of each thing to whose end AWS said yes."""
KnownNow = Callable[[], Known]
"""What states know at this moment; raises while somebody is changing that."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What was ended, what was spared, and what was to be ended and is there."""

    ended: tuple[Found, ...]
    left: tuple[Found, ...]
    not_ended: tuple[Found, ...] = ()
    refusals: Mapping[Key, str] = field(default_factory=dict)
    """AWS's last code for what is in `not_ended`, boto3's where AWS did not answer; none where it said yes and the
    thing is still on its way out."""

    def named(self, one: Found) -> str:
        """A thing in `not_ended`, with AWS's code."""
        code = self.refusals.get(key_of(one))
        return f"{one.kind} {one.id}" + (f" ({code})" if code else "")


def nobody_asks(one: Found) -> None:
    """For those who need not know what ended when."""


def look(clients: Clients, cluster_id: str | None, kinds: Sequence[Kind] = KINDS) -> tuple[Found, ...]:
    """Everything that carries the id (None: any id), in the order in which it would be ended. Raises CloudError."""
    with aws_errors(f"looking for what belongs to {cluster_id or 'clusters'} in {clients.region}"):
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
    agreed: Agreed = nobody_asks,
    known_now: KnownNow | None = None,
    kinds: Sequence[Kind] = KINDS,
) -> Sweep:
    """Ends all orphans; data only when made after `data_since`. Raises CloudError, also when time is over.

    `known_now`: as for `end_all`.
    """
    swept = end_all(
        clients,
        cluster_id,
        known,
        spares=lambda one: _is_kept(one, data_since, kinds),
        pause=pause,
        timeout_s=timeout_s,
        tell=tell,
        agreed=agreed,
        known_now=known_now,
        kinds=kinds,
    )
    if swept.not_ended:
        named = ", ".join(swept.named(one) for one in swept.not_ended)
        told = f"not ended in {timeout_s:.0f} s: {named}; the same command again goes on with it"
        raise CloudError(told, code=NOT_ENDED, hint=_look_by_hand(clients, cluster_id))
    return swept


def end_all(
    clients: Clients,
    cluster_id: str,
    known: Known,
    *,
    spares: Callable[[Found], bool],
    pause: Callable[[], None],
    timeout_s: float,
    tell: Callable[[str], None],
    look_again: Callable[[Sequence[Found]], None] = lambda things: None,
    agreed: Agreed = nobody_asks,
    known_now: KnownNow | None = None,
    kinds: Sequence[Kind] = KINDS,
) -> Sweep:
    """Ends all orphans but those that `spares` says. Raises CloudError when AWS does not answer.

    What AWS refuses because another thing needs it is tried again until the time is over; what it refuses for good
    only until nothing else is left. `look_again` sees all that is there before each round, and raises to stop it.
    `known_now` is asked after the look that shows a new orphan and before its end: what a run made that began since
    is either of a run under way, or in a state by then, and what is made later was not seen by this look.
    """
    give_up = time.monotonic() + timeout_s
    asked: dict[Key, Found] = {}
    tried: set[Key] = set()
    refusals: dict[Key, str] = {}
    quiet = 0
    while True:
        there = look(clients, cluster_id, kinds)
        look_again(there)
        rest, spared = _parted(orphans(there, known, kinds), spares)
        if known_now is not None and any(key_of(one) not in tried for one in due(rest, kinds)):
            known = known_now()
            rest, spared = _parted(orphans(there, known, kinds), spares)
        quiet = 0 if rest else quiet + 1
        now_due = due(rest, kinds)
        were_tried = all(key_of(one) in asked for one in now_due)
        is_hopeless = bool(rest) and were_tried and all(_is_hopeless(refusals.get(key_of(one))) for one in now_due)
        if quiet >= LOOKS or is_hopeless or (time.monotonic() > give_up and rest and were_tried):
            return Sweep(ended=_gone(asked, rest), left=spared, not_ended=rest, refusals=refusals)
        for one in now_due:
            if key_of(one) not in asked:
                tell(f"{one.kind} {one.id}")
            _note(refusals, one, _end(clients, one, kinds, agreed))
            asked[key_of(one)] = one
        # What is called after the cluster, as its role is, and comes back after AWS said yes, is a new one.
        tried = {key_of(one) for one in now_due if cluster_id not in one.id or key_of(one) in refusals}
        pause()


def _parted(lost: Iterable[Found], spares: Callable[[Found], bool]) -> tuple[tuple[Found, ...], tuple[Found, ...]]:
    """What goes, and what is spared."""
    listed = tuple(lost)
    spared = tuple(one for one in listed if spares(one))
    return tuple(one for one in listed if one not in spared), spared


def _gone(asked: Mapping[Key, Found], rest: Sequence[Found]) -> tuple[Found, ...]:
    present = {key_of(one) for one in rest}
    return tuple(one for key, one in asked.items() if key not in present)


def due(rest: Iterable[Found], kinds: Sequence[Kind] = KINDS) -> tuple[Found, ...]:
    """What is ended now: guards only when nothing is there that they would end, should all else fail."""
    listed = tuple(rest)
    if any(one.kind in GUARDED for one in listed):
        return tuple(one for one in listed if not kind_of(one, kinds).is_guard)
    return listed


def key_of(one: Found) -> Key:
    """What tells a thing from all others."""
    return one.kind, one.id


def _look_by_hand(clients: Clients, cluster_id: str) -> str:
    """The command that lists what carries the id."""
    if clients.is_rehearsal:
        return "clusterctl rehearse list"
    words = f"--region {clients.region} --tag-filters Key={ID_TAG},Values={cluster_id}"
    return f"aws resourcegroupstaggingapi get-resources {words}"


def _is_kept(one: Found, data_since: datetime | None, kinds: Sequence[Kind]) -> bool:
    if not kind_of(one, kinds).is_data:
        return False
    return data_since is None or one.created_at is None or one.created_at < data_since


def _is_hopeless(code: str | None) -> bool:
    return code is not None and any(word in code for word in HOPELESS)


def _note(refusals: dict[Key, str], one: Found, code: str | None) -> None:
    """Keeps AWS's last word on a thing."""
    if code is None:
        refusals.pop(key_of(one), None)
    else:
        refusals[key_of(one)] = code


def _end(clients: Clients, one: Found, kinds: Sequence[Kind], agreed: Agreed) -> str | None:
    """AWS's code when it refused for now, such as DependencyViolation while an instance is still ending.

    No answer is a refusal for now, too: the next look tells what became of it, or that AWS is silent.
    """
    try:
        kind_of(one, kinds).delete(clients, one)
    except BotoCoreError as e:
        return type(e).__name__
    except ClientError as e:
        code = code_of(e)
        return None if any(word in code for word in FORGIVEN) else code
    agreed(one)
    return None
