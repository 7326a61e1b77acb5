"""`clusterctl reap`: looks, judges, shows; with --yes it ends what may end."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import CloudError, NothingMatched
from clusterctl_infra.names import REHEARSAL_SUFFIX
from clusterctl_infra.nearest import did_you_mean
from clusterctl_infra.outputs import Inventory
from clusterctl_infra.region_keys import RegionAccess

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.clients import AwsClients, configured_region
from clusterctl.cloud.clock import refuse_wrong_clock
from clusterctl.cloud.resource import CloudResource, type_of
from clusterctl.cloud.resource_types import KINDS
from clusterctl.engine.purchase_file import paid_words
from clusterctl.engine.region import region_access
from clusterctl.home import Home
from clusterctl.output import Output, unshown_by
from clusterctl.prices.rows import check_region
from clusterctl.reap.ending import Ended, end_judged, refuse_left
from clusterctl.reap.known_here import forgetting, inventories_here, known_here
from clusterctl.reap.search import ClientsOf, Search, regions_asked, search
from clusterctl.reap.spot_market import spot_market
from clusterctl.reap.verdict import Asked, Verdict, judge, spared_since
from clusterctl.reap.view import ReapView, again, reap_json, reap_text, typed


@dataclass(frozen=True, kw_only=True)
class ReapRequest:
    """What a person asked for."""

    asked: Asked
    region: str | None
    all_regions: bool
    rehearse: bool
    acts: bool
    as_json: bool


def reap(request: ReapRequest, output: Output, home: Home, environ: Mapping[str, str]) -> None:
    """Shows what is there and, with --yes, ends what may be ended. Raises ClusterctlError, StillBills."""
    if request.rehearse:  # AWS has no address for a region that does not exist; the rehearsed one answers to any name
        check_region(load_catalog(home.prices_file), request.region)
    look_and_end(request, region_clients(region_access(home, environ) if request.rehearse else None), output, home)


def look_and_end(request: ReapRequest, clients_of: ClientsOf, output: Output, home: Home) -> None:
    """Looks, judges, shows and ends, with the clients of each region.

    What is to be ended is ended even if nobody reads the output, or stdout takes nothing: a scheduler's log may be
    full. That error is raised last.
    """
    view = _seen(request, home, clients_of, output.live)
    refuse_unknown(view)
    unshown = None if request.as_json else unshown_by(lambda: output.data(reap_text(view)))
    tell_paid(home, output, now=view.now, is_rehearsal=request.rehearse)
    ended: tuple[Ended, ...] = ()
    if request.acts:
        # Grace is counted by this computer's clock; AWS refuses only what is five minutes off.
        refuse_wrong_clock(clients_of(view.search.regions[0]), undone="nothing was ended")
        ended = _end(request, view, clients_of, output, home)
    if request.as_json:
        unshown = unshown_by(lambda: output.json(reap_json(view, ended)))
    for end in ended:
        if end.is_done and end.verdict.known is not None:
            output.note(f"  next: {forgetting(home, end.verdict.known.cluster)} forgets it here, too")
    refuse_left(ended, again=again(view))
    refuse_unseen(view.search)
    if unshown is not None:
        raise unshown


def tell_paid(home: Home, output: Output, *, now: datetime, is_rehearsal: bool) -> None:
    """Names the capacity blocks that were bought from this computer and have not ended: nothing here ends them."""
    for file in sorted(home.purchases_dir.glob("*.json")):
        cluster = file.stem
        if cluster.endswith(REHEARSAL_SUFFIX) == is_rehearsal:
            paid = paid_words(file, now=now, is_rehearsal=is_rehearsal)
            if paid is not None:
                output.note(f"  {cluster.removesuffix(REHEARSAL_SUFFIX)}: {paid}")


def region_clients(rehearsed: RegionAccess | None) -> ClientsOf:
    """A function that gives a region's clients, always the same ones; credentials are got once for all regions."""
    first: list[AwsClients] = []

    @functools.cache
    def clients_of(region: str) -> Clients:
        made = AwsClients.at(rehearsed, region=region, beside=first[0] if first else None)
        first.append(made)
        return made

    return clients_of


def _seen(request: ReapRequest, home: Home, clients_of: ClientsOf, tell: Callable[[str], None]) -> ReapView:
    """What is there, and the verdicts about it. Raises UsageError, CloudError."""
    inventories = inventories_here(home, rehearsal=request.rehearse)
    configured = None if request.rehearse else configured_region()
    everywhere = request.all_regions or looks_everywhere(request, inventories)
    regions = regions_asked(
        request.region, (inventory.region for inventory in inventories), configured, all_regions=everywhere
    )
    found = search(clients_of, tuple(regions), all_regions=everywhere, tell=tell)
    known, now = known_here(inventories, home), datetime.now(UTC).replace(microsecond=0)
    verdicts = (
        judge(
            remains,
            request.asked,
            known.get(remains.cluster_id),
            now=now,
            all_regions=found.is_everywhere,
            not_listed=found.not_listed_in(remains.region),
        )
        for remains in found.remains
    )
    return ReapView(
        search=found,
        verdicts=tuple(verdicts),
        asked=request.asked,
        acts=request.acts,
        rehearsal=request.rehearse,
        catalog=load_catalog(home.prices_file),
        market=spot_market(found.remains, clients_of, now=now),
        now=now,
    )


def _end(request: ReapRequest, view: ReapView, clients_of: ClientsOf, output: Output, home: Home) -> tuple[Ended, ...]:
    """Ends all that may be ended, after a second look at each cluster; returns how that went."""

    def why_not_now(verdict: Verdict, things: Sequence[CloudResource]) -> str | None:
        clusters = known_here(inventories_here(home, rehearsal=request.rehearse), home)
        known = clusters.get(verdict.remains.cluster_id)
        return spared_since(verdict, things, request.asked, known, now=datetime.now(UTC).replace(microsecond=0))

    def observed_file(verdict: Verdict) -> Path | None:
        return None if verdict.known is None else home.observed_file(verdict.remains.cluster_id)

    return end_judged(
        view.verdicts, view.search, clients_of, why_not_now, tell=output.note, observed_file=observed_file
    )


def refuse_unseen(found: Search) -> None:
    """Raises CloudError, naming each region and kind that could not be looked through: what is there was not ended."""
    refusals = [*found.unseen.values(), *(refusal for kinds in found.gaps.values() for refusal in kinds.values())]
    if not refusals:
        return
    unseen = [f"not looked through: {region}: {refusal.message}" for region, refusal in found.unseen.items()]
    gaps = [f"AWS did not say whether it has: {', '.join(found.gap_texts)}"] if found.gaps else []
    raise CloudError("; ".join([*unseen, *gaps]), code=refusals[0].code, hint=refusals[0].hint)


def looks_everywhere(request: ReapRequest, inventories: Sequence[Inventory]) -> bool:
    """Whether all regions are searched without --all-regions: a rehearsal has no AWS settings that name a region."""
    return request.rehearse and request.region is None and not inventories


def refuse_unknown(view: ReapView) -> None:
    """Raises NothingMatched for an id that names no cluster here, or no data of a cluster that ends."""
    asked, verdicts = view.asked, view.verdicts
    where, look = ", ".join(view.search.regions), typed(view, "clusterctl reap")
    where += "" if view.search.is_whole else ", as far as AWS says,"
    there = {verdict.remains.cluster_id: verdict.remains.name for verdict in verdicts}
    for id in sorted(asked.clusters - set(there)):
        by_name = [other for other, name in there.items() if name == id]
        guess = f" (the name of {by_name[0]}?)" if by_name else did_you_mean(id, there)
        raise NothingMatched(f"--cluster {id}: nothing in {where} carries this id{guess}", hint=look)
    data = {
        resource.id for verdict in verdicts if verdict.ends for resource in verdict.remains.things if _is_data(resource)
    }
    for id in sorted(asked.data - data):
        raise NothingMatched(
            f"--data {id}: no data of a cluster that would be ended{did_you_mean(id, data)}", hint=look
        )


def _is_data(resource: CloudResource) -> bool:
    return type_of(resource, KINDS).is_data
