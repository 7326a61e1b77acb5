"""Ends what was judged: cluster after cluster, each until nothing is left or its time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from clusterctl_infra.errors import CloudError, StillBills

from clusterctl.cloud.found import kind_of
from clusterctl.cloud.kinds import KINDS
from clusterctl.cloud.sweep import Sweep, end_all
from clusterctl.reap.search import ClientsOf, Search
from clusterctl.reap.verdict import Verdict

END_S = 600.0
"""A big GPU machine takes minutes to end, and its placement group and subnet wait for it."""
REHEARSAL_PAUSE_S = 0.2
AWS_PAUSE_S = 3.0


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the end of one cluster went."""

    verdict: Verdict
    swept: Sweep
    trouble: str | None = None
    """AWS stopped answering."""

    @property
    def is_done(self) -> bool:
        """Nothing that was to go is there."""
        return self.trouble is None and not self.swept.not_ended


def end_judged(
    verdicts: Iterable[Verdict],
    search: Search,
    clients_of: ClientsOf,
    *,
    tell: Callable[[str], None],
    timeout_s: float = END_S,
) -> tuple[Ended, ...]:
    """The end of each cluster that ends; one that cannot be ended does not keep the others."""
    return tuple(
        _end(verdict, search, clients_of, tell=tell, timeout_s=timeout_s) for verdict in verdicts if verdict.ends
    )


def refuse_left(ended: Iterable[Ended], *, again: str) -> None:
    """Raises StillBills, naming what could not be ended and AWS's reason."""
    lines = [line for one in ended if not one.is_done for line in _lines(one)]
    if lines:
        raise StillBills("not all could be ended", problems=lines, hint=again)


def _end(
    verdict: Verdict, search: Search, clients_of: ClientsOf, *, tell: Callable[[str], None], timeout_s: float
) -> Ended:
    remains = verdict.remains
    clients = clients_of(remains.region or search.regions[0])
    pause_s = REHEARSAL_PAUSE_S if clients.is_rehearsal else AWS_PAUSE_S
    try:
        swept = end_all(
            clients,
            remains.cluster_id,
            {},
            spares=lambda one: verdict.why_stays(one) is not None,
            pause=lambda: time.sleep(pause_s),
            timeout_s=timeout_s,
            tell=lambda what: tell(f"{remains.name} {remains.cluster_id}: ending {what}"),
        )
    except CloudError as lost:
        return Ended(verdict=verdict, swept=Sweep(ended=(), left=()), trouble=lost.message)
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
