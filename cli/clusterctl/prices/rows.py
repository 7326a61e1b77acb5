"""Which prices a person asked to see, and how old they are. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from clusterctl_infra.catalog.gpus import GpuSpecUnreadable
from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.errors import NothingMatched, UsageError
from clusterctl_infra.nearest import did_you_mean


@dataclass(frozen=True, kw_only=True)
class PriceRow:
    """One type in one region; prices in US dollars per hour, None is unknown."""

    instance_type: str
    region: str
    gpus: int
    gpu_name: str | None
    on_demand_usd_per_hour: float | None
    spot_usd_per_hour: float | None
    dated: str
    age_days: int


def price_rows(catalog: Catalog, types: Sequence[str], *, region: str | None, today: date) -> tuple[PriceRow, ...]:
    """Rows by type and region; without a region, wherever a price is known.

    Raises NothingMatched for a word that is no type, UsageError for one that is no region.
    """
    check_region(catalog, region)
    return tuple(
        _row(catalog, name, place, today)
        for name in matching_types(catalog, types)
        for place in ([region] if region is not None else catalog.regions_with_price(name))
    )


def matching_types(catalog: Catalog, words: Sequence[str]) -> tuple[str, ...]:
    """The types that the words name, whole (`p5.48xlarge`), by family (`p5`) or GPU (`h100`); all for no words."""
    names = catalog.names()
    if not words:
        return names
    families = {name.partition(".")[0] for name in names}
    chosen: set[str] = set()
    for word in words:
        found = [name for name in names if word in (name, name.partition(".")[0])] or _with_gpu(catalog, word)
        if not found:
            near = did_you_mean(word, [*names, *families])
            raise NothingMatched(f"the catalog has no instance type {word}{near}", hint="clusterctl prices")
        chosen.update(found)
    return tuple(name for name in names if name in chosen)


def _with_gpu(catalog: Catalog, word: str) -> list[str]:
    """The types with this GPU, in whatever number; none for a word that cannot name a GPU."""
    try:
        return [row.name for row in catalog.with_gpu(word)]
    except GpuSpecUnreadable:
        return []


def check_region(catalog: Catalog, region: str | None) -> None:
    """Raises UsageError for a word that is no region."""
    if region is not None and region not in catalog.regions():
        raise UsageError(
            f"--region {region}: no AWS region{did_you_mean(region, catalog.regions())}", hint="clusterctl prices"
        )


def age_days(dated: str, today: date) -> int:
    """Days since an ISO date; for a month (`2026-01`), since its first day, which errs on the old side."""
    return (today - date.fromisoformat(dated if len(dated) > len("2026-01") else f"{dated}-01")).days


def _row(catalog: Catalog, name: str, region: str, today: date) -> PriceRow:
    kind, dated = catalog.types[name], catalog.price_dated(name, region)
    return PriceRow(
        instance_type=name,
        region=region,
        gpus=kind.gpu_count,
        gpu_name=kind.gpu_name,
        on_demand_usd_per_hour=catalog.price_usd_per_hour(name, region),
        spot_usd_per_hour=catalog.spot_price_usd_per_hour(name, region),
        dated=dated,
        age_days=age_days(dated, today),
    )
