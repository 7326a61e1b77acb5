"""The screen of `clusterctl reap`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.names import NO_DEADLINE

from clusterctl.cloud.deletion_attempts import key_of
from clusterctl.cloud.resource import CloudResource, type_of
from clusterctl.cloud.resource_types import KINDS
from clusterctl.reap.ending import Ended
from clusterctl.reap.rates import is_at_most, usd_per_day
from clusterctl.reap.search import Search
from clusterctl.reap.spot_market import Market
from clusterctl.reap.verdict import FILE_SYSTEMS, Asked, Verdict, latest_deadline
from clusterctl.text.quantities import UNKNOWN, clock, count, duration, rounded, usd
from clusterctl.text.table import render_table

NOWHERE = "-"


@dataclass(frozen=True, kw_only=True)
class ReapView:
    """What one look at an account found, and what was judged."""

    search: Search
    verdicts: tuple[Verdict, ...]
    asked: Asked
    acts: bool
    rehearsal: bool
    catalog: Catalog
    market: Market
    """What spot machines cost now."""
    now: datetime


def reap_text(view: ReapView) -> str:
    """A row for each cluster; then, for those that end, what of them costs money and what of them stays."""
    ending = [verdict for verdict in view.verdicts if verdict.ends]
    where = "all regions" if view.search.is_everywhere else ", ".join(view.search.regions)
    found = count(len(view.verdicts), "cluster") if view.verdicts else "nothing of any cluster"
    found += "" if view.search.is_whole else ", as far as AWS says"
    would = f" · {len(ending)} {'end' if view.acts else 'would end'}{'s' if view.acts and len(ending) == 1 else ''}"
    label = " (rehearsed: simulated money)" if view.rehearsal else ""
    lines = [f"{where} · {found}{would if view.verdicts else ''}{label}"]
    if view.verdicts:
        header = ["cluster", "name", "owner", "whose", "region", "age", "deadline", "$/day", "things", "verdict"]
        lines.append(
            render_table(header, [_row(view, verdict) for verdict in view.verdicts], right={"$/day", "things"})
        )
    for verdict in ending:
        lines += _details(view, verdict)
    lines += [
        f"  {_named(verdict)} would end by: {typed(view, verdict.hint)}"
        for verdict in view.verdicts
        if verdict.hint is not None
    ]
    if view.verdicts:
        lines += _price_lines(view)
    lines += [f"  not looked through: {region} ({refusal.code})" for region, refusal in view.search.unseen.items()]
    lines += [
        f"  AWS did not say whether it has: {gap}: what is there of it is in no row and no sum"
        for gap in view.search.gap_texts
    ]
    if ending and not view.acts:
        lines.append(f"  nothing was ended; next: {again(view)} --yes")
    return "\n".join(lines)


def reap_json(view: ReapView, ended: Sequence[Ended]) -> dict[str, object]:
    """What `clusterctl reap --json` prints; what is not known is null."""
    done = {end.verdict.remains.cluster_id: end for end in ended}
    return {
        "rehearsal": view.rehearsal,
        "simulated": view.rehearsal,
        "at": view.now.isoformat(),
        "regions": list(view.search.regions),
        "all_regions": view.search.all_regions,
        "is_whole": view.search.is_whole,
        "unseen": {region: refusal.message for region, refusal in view.search.unseen.items()},
        "not_asked": [
            {"region": region, "kind": kind, "code": refusal.code, "reason": refusal.message}
            for region, kinds in view.search.gaps.items()
            for kind, refusal in kinds.items()
        ],
        "dry_run": not view.acts,
        "grace_s": view.asked.grace.total_seconds(),
        "prices_dated": view.catalog.prices_dated,
        "clusters": [_cluster_json(view, verdict, done.get(verdict.remains.cluster_id)) for verdict in view.verdicts],
    }


def _row(view: ReapView, verdict: Verdict) -> list[str]:
    remains = verdict.remains
    deadline = latest_deadline(remains, verdict.known)
    return [
        remains.cluster_id,
        remains.name,
        remains.owner,
        _whose(verdict),
        remains.region or NOWHERE,
        UNKNOWN if remains.born_at is None else duration(view.now - remains.born_at),
        NO_DEADLINE if remains.is_parked else UNKNOWN if deadline is None else clock(deadline, view.now),
        _price_per_day(view, verdict),
        str(len(remains.things)),
        ("ends: " if verdict.ends else "stays: ") + verdict.reason,
    ]


def _price_per_day(view: ReapView, verdict: Verdict) -> str:
    """`$1320.96`, with a `+` where things may be missing in it, and `at most` where it cannot be more."""
    remains = verdict.remains
    if _may_bill_unseen(verdict):
        return f"{usd(_per_day(view, remains.things, remains.region))}+"
    return _bounded(view, remains.things, remains.region)


def _bounded(view: ReapView, things: Sequence[CloudResource], region: str | None) -> str:
    per_day = _per_day(view, things, region)
    most = "at most " if per_day is not None and is_at_most(things, view.market) else ""
    return most + usd(per_day)


def _price_lines(view: ReapView) -> list[str]:
    things = [resource for verdict in view.verdicts for resource in verdict.remains.things]
    lines = [f"  prices are list prices of {view.catalog.prices_dated}: an estimate"]
    if view.market:
        lines.append("  spot machines are at AWS's present spot price, which changes")
    if is_at_most(things, view.market):
        lines.append(
            "  at most: AWS gives no spot price, so the machine is at its price on demand, which it never exceeds"
        )
    return lines


def _whose(verdict: Verdict) -> str:
    return "yours" if verdict.known is not None else "unknown here"


def _details(view: ReapView, verdict: Verdict) -> list[str]:
    """The lines about a cluster that ends: what of it costs money, and what of it stays."""
    remains, lines = verdict.remains, []
    for resource in remains.things:
        stays = verdict.why_stays(resource)
        is_data = type_of(resource, KINDS).is_data and resource.attached_to is None
        if resource.meter is None or (stays is not None and not is_data):
            continue
        price = f"{_bounded(view, [resource], remains.region)} a day"
        lines.append(
            f"  {_named(verdict)}: {resource.kind} {resource.id}, {price}" + (f"; stays, {stays}" if stays else "")
        )
    if verdict.keeps_file_systems:
        is_seen = any(resource.kind in FILE_SYSTEMS for resource in remains.things)
        data = "the data" if is_seen else "data, which AWS does not list,"
        lines.append(f"  {_named(verdict)}: the network that leads to {data} stays too, without a way out")
    return lines


def again(view: ReapView) -> str:
    """The command, with the typed flags that choose what is ended."""
    asked = view.asked
    words = ["clusterctl reap"]
    words += [f"--cluster {id}" for id in sorted(asked.clusters)] + [f"--data {id}" for id in sorted(asked.data)]
    words += ["--anyones"] if asked.anyones else []
    return typed(view, " ".join(words))


def typed(view: ReapView, command: str) -> str:
    """A command with the flags that say where to look."""
    if not command.startswith("clusterctl reap"):
        return command
    words = [command]
    if view.search.all_regions and "--all-regions" not in command:
        words.append("--all-regions")
    elif len(view.search.regions) == 1 and "--all-regions" not in command:
        words.append(f"--region {view.search.regions[0]}")
    words += ["--rehearse"] if view.rehearsal else []
    return " ".join(words)


def _named(verdict: Verdict) -> str:
    return f"{verdict.remains.name} {verdict.remains.cluster_id}"


def _may_bill_unseen(verdict: Verdict) -> bool:
    """Whether a sum of what was seen may be too low."""
    return any(kind.name in verdict.not_listed for kind in KINDS if kind.bills is not None)


def _per_day(view: ReapView, things: Iterable[CloudResource], region: str | None) -> float | None:
    return usd_per_day(things, view.catalog, region or "", market=view.market)


def _cluster_json(view: ReapView, verdict: Verdict, ended: Ended | None) -> dict[str, object]:
    remains = verdict.remains
    deadline = latest_deadline(remains, verdict.known)
    return {
        "cluster_id": remains.cluster_id,
        "name": remains.name,
        "owner": remains.owner,
        "whose": "mine" if verdict.known is not None else "unknown here",
        "region": remains.region,
        "born_at": None if remains.born_at is None else remains.born_at.isoformat(),
        "deadline": None if deadline is None else deadline.isoformat(),
        "usd_per_day": rounded(_per_day(view, remains.things, remains.region)),
        "is_at_most": is_at_most(remains.things, view.market),
        "ends": verdict.ends,
        "reason": verdict.reason,
        "hint": None if verdict.hint is None else typed(view, verdict.hint),
        "things": [_thing_json(view, verdict, resource, ended) for resource in remains.things],
        "not_asked": sorted(verdict.not_listed if ended is None else ended.deletion.not_listed),
        "trouble": None if ended is None else ended.trouble,
    }


def _thing_json(view: ReapView, verdict: Verdict, resource: CloudResource, ended: Ended | None) -> dict[str, object]:
    gone = ended is not None and key_of(resource) in {key_of(other) for other in ended.deletion.ended}
    return {
        "kind": resource.kind,
        "id": resource.id,
        "created_at": None if resource.created_at is None else resource.created_at.isoformat(),
        "usd_per_day": rounded(_per_day(view, [resource], verdict.remains.region)),
        "is_at_most": is_at_most([resource], view.market),
        "is_data": type_of(resource, KINDS).is_data,
        "goes": verdict.ends and verdict.why_stays(resource) is None,
        "stays_because": verdict.why_stays(resource) if verdict.ends else verdict.reason,
        "gone": gone,
        "refusal": None if ended is None else ended.deletion.refusals.get(key_of(resource)),
    }
