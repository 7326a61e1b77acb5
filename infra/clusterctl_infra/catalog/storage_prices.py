"""What storage costs, as far as the dated data file knows; a region that is not in it is unknown, never free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any  # JSON before it is checked

SCRATCH = "scratch"


@dataclass(frozen=True, kw_only=True)
class EfsPrice:
    """EFS bills what is stored and what is moved (elastic throughput); US dollars per GiB."""

    stored_usd_per_gib_month: float
    read_usd_per_gib: float
    written_usd_per_gib: float


@dataclass(frozen=True, kw_only=True)
class StoragePrices:
    """List prices by region."""

    dated: str
    """ISO date (or month)."""
    hours_per_month: int
    """A monthly price of AWS's is divided by this to get the hourly one."""
    lustre_usd_per_gib_month: Mapping[tuple[str, str], float]
    """(region, tier) → price; the tier is `scratch` or the MB/s per TiB of persistent SSD."""
    efs: Mapping[str, EfsPrice]

    def lustre_usd_per_hour(self, region: str, *, size_gib: int, throughput: int | None) -> float | None:
        """What a file system of this size costs, full or empty; `throughput` None: scratch. None: unknown."""
        tier = SCRATCH if throughput is None else str(throughput)
        monthly = self.lustre_usd_per_gib_month.get((region, tier))
        return None if monthly is None else size_gib * monthly / self.hours_per_month


def storage_prices(document: Mapping[str, Any]) -> StoragePrices:
    """The prices in the data file's JSON."""
    regions = document["regions"]
    return StoragePrices(
        dated=document["dated"],
        hours_per_month=document["hours_per_month"],
        lustre_usd_per_gib_month={
            (region, tier): price
            for region, row in regions.items()
            for tier, price in row["lustre_usd_per_gib_month"].items()
        },
        efs={region: EfsPrice(**row["efs"]) for region, row in regions.items()},
    )
