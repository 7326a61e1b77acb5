"""Ends what was judged: cluster after cluster, each until nothing is left or its time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from clusterctl_infra.errors import CloudError, StillBills

from clusterctl.cloud.found import Found, kind_of
from clusterctl.cloud.kinds import KINDS
from clusterctl.cloud.sweep import Sweep, end_all
from clusterctl.reap.search import ClientsOf, Search
from clusterctl.reap.verdict import Verdict

END_S = 600.0
"""A big GPU machine takes minutes to end, and its placement group and subnet wait for it."""
REHEARSAL_PAUSE_S = 0.2
AWS_PAUSE_S = 3.0
WhyNotNow = Callable[[Verdict, Sequence[Found]], str | None]
"""Why a cluster that was to end is left alone, by what is there of it now."""


class LeftAlone(Exception):
    """Somebody moved the deadline of a cluster, or began to change it, since it was judged."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the end of one cluster went."""

    verdict: Verdict
    swept: Sweep
    trouble: str | None = None
    """AWS stopped answering, or the cluster is somebody's again."""

    @property
    def is_done(self) -> bool:
        """Nothing that was to go is there."""
        return self.trouble is None and not self.swept.not_ended


def end_judged(
    verdicts: Iterable[Verdict],
    search: Search,
    clients_of: ClientsOf,
    why_not_now: WhyNotNow,
    *,
    tell: Callable[[str], None],
    timeout_s: float = END_S,
) -> tuple[Ended, ...]:
    """The end of each cluster that ends; one that cannot be ended does not keep the others."""
    return tuple(
        _end(verdict, search, clients_of, why_not_now, tell=tell, timeout_s=timeout_s)
        for verdict in verdicts
        if verdict.ends
    )


def refuse_left(ended: Iterable[Ended], *, again: str) -> None:
    """Raises StillBills, naming what could not be ended and AWS's reason."""
    lines = [line for one in ended if not one.is_done for line in _lines(one)]
    if lines:
        raise StillBills("not all could be ended", problems=lines, hint=again)


def _end(
    verdict: Verdict,
    search: Search,
    clients_of: ClientsOf,
    why_not_now: WhyNotNow,
    *,
    tell: Callable[[str], None],
    timeout_s: float,
) -> Ended:
    remains = verdict.remains
    clients = clients_of(remains.region or search.regions[0])
    pause_s = REHEARSAL_PAUSE_S if clients.is_rehearsal else AWS_PAUSE_S

    def look_again(things: Sequence[Found]) -> None:
        why = why_not_now(verdict, things)
        if why is not None:
            raise LeftAlone(why)

    try:
        swept = end_all(
            clients,
            remains.cluster_id,
            {},
            spares=lambda one: verdict.why_stays(one) is not None,
            look_again=look_again,
            pause=lambda: time.sleep(pause_s),
            timeout_s=timeout_s,
            tell=lambda what: tell(f"{remains.name} {remains.cluster_id}: ending {what}"),
        )
    except (CloudError, LeftAlone) as lost:
        return Ended(verdict=verdict, swept=Sweep(ended=(), left=()), trouble=str(lost))
    return Ended(verdict=verdict, swept=swept)


def _lines(one: Ended) -> list[str]:
    named = f"{one.verdict.remains.name} {one.verdict.remains.cluster_id}"
    if one.trouble is not None:
        return [f"  {named}: {one.trouble}"]
    return [
        f"  {named}: {one.swept.named(thing)}" + (f": bills {bill}" if bill is not None else "")
        for thing in one.swept.not_ended
        for bill in (kind_of(thing, KINDS).bills,)
    ]
