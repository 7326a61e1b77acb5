"""Ends the clusters that were judged, several at once, each until nothing is left or its time is over."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from clusterctl_infra.errors import CloudError, StillBills

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.delete_orphans import Deletion, end_all
from clusterctl.cloud.deletion_attempts import pause_s
from clusterctl.cloud.look import UNKNOWN_REST, named
from clusterctl.cloud.machine_resources import RESERVATION
from clusterctl.cloud.resource import CloudResource, ResourceType, type_of
from clusterctl.cloud.resource_types import KINDS
from clusterctl.cost.sighting_file import note_cancelled, note_look
from clusterctl.reap.search import MAKING_S, ClientsOf, Search, made_in_time
from clusterctl.reap.verdict import Verdict

END_S = 600.0
"""A big GPU machine takes minutes to end, and its placement group and subnet wait for it."""
AT_ONCE = 8
"""Each looks through a region again and again; more at once would run into EC2's limit of requests."""
WhyNotNow = Callable[[Verdict, Sequence[CloudResource]], str | None]
"""Gives why a cluster that was to end is left alone, by the things that it has now; None: it ends."""


class LeftAlone(Exception):
    """Somebody moved a cluster's deadline, or began to change it, since it was judged; or `reap` was stopped."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the end of one cluster went."""

    verdict: Verdict
    deletion: Deletion
    trouble: str | None = None
    """Why it was left: AWS stopped answering, or the cluster is somebody's again."""

    @property
    def is_done(self) -> bool:
        """Whether nothing that was to go is left, and AWS listed every kind."""
        return self.trouble is None and not self.deletion.not_ended and not self.deletion.not_listed


def end_judged(
    verdicts: Iterable[Verdict],
    search: Search,
    clients_of: ClientsOf,
    why_not_now: WhyNotNow,
    *,
    tell: Callable[[str], None],
    observed_file: Callable[[Verdict], Path | None],
    timeout_s: float = END_S,
    making_s: float = MAKING_S,
    kinds: Sequence[ResourceType] = KINDS,
) -> tuple[Ended, ...]:
    """Ends each cluster that is to end, side by side, and returns how it went; trouble with one does not stop others.

    `observed_file`: where to write when a cluster's machines and reservations ended; None: it is not known here.
    """
    stop = threading.Event()
    ends = [
        _End(
            verdict=verdict,
            region=verdict.remains.region or search.regions[0],
            clients_of=clients_of,
            why_not_now=why_not_now,
            tell=tell,
            observed_file=observed_file(verdict),
            stop=stop,
            timeout_s=timeout_s,
            making_s=making_s,
            kinds=kinds,
        )
        for verdict in verdicts
        if verdict.ends
    ]
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        try:
            return tuple(pool.map(_End.run, ends))
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def refuse_left(ended: Iterable[Ended], *, again: str) -> None:
    """Raises StillBills, naming what could not be ended, or not be listed, and AWS's reason."""
    undone = [cluster for cluster in ended if not cluster.is_done]
    if not undone:
        return
    is_left = any(cluster.trouble is not None or cluster.deletion.not_ended for cluster in undone)
    message = "not all could be ended" if is_left else UNKNOWN_REST
    raise StillBills(message, problems=[line for cluster in undone for line in _lines(cluster)], hint=again)


@dataclass(frozen=True, kw_only=True)
class _End:
    """The end of one cluster, in a thread of its own."""

    verdict: Verdict
    region: str
    clients_of: ClientsOf
    why_not_now: WhyNotNow
    tell: Callable[[str], None]
    observed_file: Path | None
    stop: threading.Event
    timeout_s: float
    making_s: float
    kinds: Sequence[ResourceType]

    def run(self) -> Ended:
        """Ends everything of the cluster; returns how that went."""
        try:
            clients = self.clients_of(self.region)
            made_in_time(clients, self.making_s)
            self._note_look(clients)
            deletion = self._end(clients)
        except (CloudError, LeftAlone) as lost:
            return Ended(verdict=self.verdict, deletion=Deletion(ended=(), left=()), trouble=str(lost))
        self._note_look(clients)
        return Ended(verdict=self.verdict, deletion=deletion)

    def _end(self, clients: Clients) -> Deletion:
        remains = self.verdict.remains
        return end_all(
            clients,
            remains.cluster_id,
            {},
            spares=lambda resource: self.verdict.why_stays(resource) is not None,
            look_again=self._look_again,
            agreed=self._agreed,
            pause=lambda: self._pause(pause_s(clients)),
            timeout_s=self.timeout_s,
            tell=lambda what: self.tell(f"{remains.name} {remains.cluster_id}: ending {what}"),
            kinds=self.kinds,
        )

    def _look_again(self, things: Sequence[CloudResource]) -> None:
        why = self.why_not_now(self.verdict, things)
        if why is not None:
            raise LeftAlone(why)

    def _pause(self, wait_s: float) -> None:
        if self.stop.wait(wait_s):
            raise LeftAlone("stopped")

    def _agreed(self, resource: CloudResource) -> None:
        """Writes down when AWS agreed to end a reservation: later AWS says when a machine ended, but not when these."""
        if self.observed_file is not None and resource.kind == RESERVATION:
            note_cancelled(self.observed_file, resource.id, at=datetime.now(UTC).replace(microsecond=0))

    def _note_look(self, clients: Clients) -> None:
        """Writes down what AWS says of the machines now, for `cost`; nothing fails because of that."""
        if self.observed_file is not None:
            with contextlib.suppress(CloudError):
                note_look(clients, self.observed_file, self.verdict.remains.cluster_id)


def _lines(end: Ended) -> list[str]:
    cluster = f"{end.verdict.remains.name} {end.verdict.remains.cluster_id}"
    if end.trouble is not None:
        return [f"  {cluster}: {end.trouble}"]
    left = [
        f"  {cluster}: {end.deletion.named(thing)}" + (f": bills {bill}" if bill is not None else "")
        for thing in end.deletion.not_ended
        for bill in (type_of(thing, KINDS).bills,)
    ]
    return [*left, *(f"  {cluster}: AWS did not say whether it has: {kind}" for kind in named(end.deletion.not_listed))]
