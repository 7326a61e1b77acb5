"""The catalog: instance types, prices, images and regions, read from dated data files in the package."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any  # JSON before it is checked

from clusterctl_infra.catalog.charges import RegionCharges, region_charges
from clusterctl_infra.catalog.fresh_prices import FreshPrice, read_fresh_prices
from clusterctl_infra.catalog.gpus import fits_gpu, parse_gpus
from clusterctl_infra.catalog.instance import InstanceType
from clusterctl_infra.catalog.mount_clients import MountClients, mount_clients
from clusterctl_infra.catalog.storage_prices import StoragePrices, storage_prices


@dataclass(frozen=True, kw_only=True)
class Price:
    """US dollars per hour; None is unknown, never 0."""

    on_demand_usd_per_hour: float | None
    spot_usd_per_hour: float | None
    dated: str | None = None
    """ISO date; None: as old as the snapshot."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """A named image: an SSM parameter per architecture."""

    name: str
    meaning: str
    parameters: Mapping[str, str]
    system: str
    """`ubuntu-22.04`: what its packages are made for."""
    lacks: Collection[str] = ()
    """What machines with GPUs or EFA need and the image does not have: `NVIDIA driver`, `EFA driver`."""
    families: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Architecture → the families with GPUs that AWS lists for the image; empty where it lists none."""
    unpatched_since: str | None = None
    """The month since which AWS has not patched it."""
    replaced_by: str | None = None
    """The image to write instead."""


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """What AWS has to offer, as far as the data files know."""

    types: Mapping[str, InstanceType]
    prices: Mapping[tuple[str, str], Price]
    """(instance type, region) → price."""
    images: Mapping[str, Image]
    images_dated: str
    """ISO date (or month) of what is known of images."""
    mount_clients: MountClients
    region_names: tuple[str, ...]
    prices_dated: str
    """ISO date (or month) of the price snapshot."""
    complete_families: frozenset[str]
    """Families for which the snapshot names every region; of others it has a selection."""
    refused_types: Mapping[str, str]
    """Types that AWS has and the catalog does not → the reason."""
    public_address_usd_per_hour: float
    storage: StoragePrices
    charges: Mapping[str, RegionCharges]
    """Region → what bills beside machines; a region that is not named is unknown."""
    charges_dated: str
    """ISO date (or month) of `charges`."""

    def instance_type(self, name: str) -> InstanceType | None:
        return self.types.get(name)

    def names(self) -> tuple[str, ...]:
        return tuple(self.types)

    def for_gpus(self, spec: str, region: str | None = None) -> list[InstanceType]:
        """The types with exactly these GPUs: the cheapest on-demand in `region` first, unknown prices last, then by
        name. Without a region, the lowest price anywhere counts. Raises GpuSpecUnreadable."""
        wanted = parse_gpus(spec)
        rows = [row for row in self.types.values() if row.gpu_count == wanted.count and fits_gpu(row, wanted)]
        return sorted(rows, key=lambda row: (self._rank_price(row.name, region), row.name))

    def with_gpu(self, spec: str) -> list[InstanceType]:
        """The types that have this GPU in whatever number. Raises GpuSpecUnreadable."""
        wanted = parse_gpus(spec)
        return [row for row in self.types.values() if fits_gpu(row, wanted)]

    def price_usd_per_hour(self, instance_type: str, region: str) -> float | None:
        """On-demand, Linux, one instance; None: unknown."""
        price = self.prices.get((instance_type, region))
        return None if price is None else price.on_demand_usd_per_hour

    def spot_price_usd_per_hour(self, instance_type: str, region: str) -> float | None:
        """The lowest of the region's zones on the day that `price_dated` gives; None: unknown."""
        price = self.prices.get((instance_type, region))
        return None if price is None else price.spot_usd_per_hour

    def price_dated(self, instance_type: str, region: str) -> str:
        """The date of the price; without a price, the date of the snapshot."""
        price = self.prices.get((instance_type, region))
        return self.prices_dated if price is None or price.dated is None else price.dated

    def regions_with_price(self, instance_type: str) -> tuple[str, ...]:
        """The regions in which the catalog has a price for the type, sorted."""
        return tuple(sorted(region for name, region in self.prices if name == instance_type))

    def is_offered(self, instance_type: str, region: str) -> bool:
        """False only where the snapshot is complete for the family and has the type in other regions alone."""
        if instance_type.partition(".")[0] not in self.complete_families:
            return True
        return (instance_type, region) in self.prices or not self.regions_with_price(instance_type)

    def image_parameter(self, name: str, architecture: str = "x86_64") -> str | None:
        """The SSM parameter that holds the newest AMI id; None: no such image for that architecture."""
        image = self.images.get(name)
        return None if image is None else image.parameters.get(architecture)

    def with_prices(self, rows: Iterable[FreshPrice]) -> Catalog:
        """The catalog with these prices in place of those that it had for the same types and regions."""
        return replace(self, prices={**self.prices, **_fresh(rows)})

    def regions(self) -> tuple[str, ...]:
        return self.region_names

    def _rank_price(self, name: str, region: str | None) -> float:
        places = [region] if region is not None else self.regions_with_price(name)
        known = [price for place in places if (price := self.price_usd_per_hour(name, place)) is not None]
        return min(known, default=float("inf"))


def load_catalog(fresh: Path | None = None) -> Catalog:
    """The catalog in this package, read in a few milliseconds; prices in the file `fresh`, if any, replace its own.

    Raises ConfigError when that file is not a price list.
    """
    regions, images = _json("regions.json"), _json("images.json")
    charges = _json("charges.json")
    lines = _text("prices.csv").splitlines()
    return Catalog(
        types={row["name"]: _instance_type(row) for row in _json("instance_types.json")["types"]},
        prices={**_prices(lines), **_fresh(() if fresh is None else read_fresh_prices(fresh))},
        images={name: Image(name=name, **row) for name, row in images["images"].items()},
        images_dated=images["dated"],
        mount_clients=mount_clients(_json("mount_clients.json")),
        region_names=tuple(regions["regions"]),
        prices_dated=_remark(lines, "dated"),
        complete_families=frozenset(_remark(lines, "complete").split()),
        refused_types=_json("refused_types.json")["types"],
        public_address_usd_per_hour=charges["public_address_usd_per_hour"],
        storage=storage_prices(_json("storage_prices.json")),
        charges=region_charges(charges),
        charges_dated=charges["dated"],
    )


def _instance_type(row: dict[str, Any]) -> InstanceType:
    return InstanceType(**{**row, "usage_classes": tuple(row["usage_classes"])})


def _prices(lines: list[str]) -> dict[tuple[str, str], Price]:
    return {
        (row["instance_type"], row["region"]): Price(
            on_demand_usd_per_hour=_number(row["on_demand_usd_per_hour"]),
            spot_usd_per_hour=_number(row["spot_usd_per_hour_min"]),
        )
        for row in csv.DictReader(_without_comments(lines))
    }


def _fresh(rows: Iterable[FreshPrice]) -> dict[tuple[str, str], Price]:
    return {
        (row.instance_type, row.region): Price(
            on_demand_usd_per_hour=row.on_demand_usd_per_hour,
            spot_usd_per_hour=row.spot_usd_per_hour,
            dated=row.dated,
        )
        for row in rows
    }


def _remark(lines: list[str], word: str) -> str:
    """The text of the comment line `# word: text`."""
    start = f"# {word}:"
    return next(line.removeprefix(start).strip() for line in lines if line.startswith(start))


def _without_comments(lines: list[str]) -> Iterator[str]:
    return (line for line in lines if not line.startswith("#"))


def _number(text: str) -> float | None:
    return float(text) if text else None


def _json(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(_text(name))
    return data


def _text(name: str) -> str:
    return (files("clusterctl_infra.catalog") / "data" / name).read_text(encoding="utf-8")
