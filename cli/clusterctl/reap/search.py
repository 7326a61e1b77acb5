"""Looks through regions for what clusters left in an account."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from clusterctl_infra.errors import UsageError

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.found import Found
from clusterctl.cloud.kinds import KINDS
from clusterctl.cloud.refusal import aws_errors
from clusterctl.cloud.sweep import look
from clusterctl.reap.remains import Remains, remains_of

PARALLEL_REGIONS = 6
FIRST_REGION = "us-east-1"
"""Who asks which regions there are asks one that every account has."""
REGIONAL_KINDS = tuple(kind for kind in KINDS if not kind.is_global)
ClientsOf = Callable[[str], Clients]


@dataclass(frozen=True, kw_only=True)
class Search:
    """Where was looked, and what was found."""

    regions: tuple[str, ...]
    all_regions: bool
    remains: tuple[Remains, ...]


def search(clients_of: ClientsOf, regions: tuple[str, ...], *, all_regions: bool) -> Search:
    """Everything of any cluster in these regions, or in every region of the account. Raises CloudError."""
    if all_regions:
        regions = enabled_regions(clients_of(regions[0] if regions else FIRST_REGION))
    with ThreadPoolExecutor(max_workers=PARALLEL_REGIONS) as pool:
        lists = pool.map(lambda region: _look(clients_of(region), is_first=region == regions[0]), regions)
        found: Mapping[str, tuple[Found, ...]] = dict(zip(regions, lists, strict=True))
    return Search(regions=regions, all_regions=all_regions, remains=remains_of(found))


def enabled_regions(clients: Clients) -> tuple[str, ...]:
    """The regions that the account uses, sorted. Raises CloudError."""
    with aws_errors("asking which regions the account has"):
        return tuple(sorted(row["RegionName"] for row in clients.ec2.describe_regions()["Regions"]))


def regions_asked(region: str | None, known: Iterable[str], configured: str | None, *, all_regions: bool) -> list[str]:
    """Where to look: the region named, else where this computer's clusters are and its AWS settings point.

    Raises UsageError when that is nowhere.
    """
    if region is not None:
        if all_regions:
            raise UsageError(f"both --region {region} and --all-regions: say one")
        return [region]
    found = sorted({*known, *([] if configured is None else [configured])})
    if not found and not all_regions:
        raise UsageError(
            "which region? This computer knows no cluster, and its AWS settings name none",
            hint="clusterctl reap --all-regions",
        )
    return found


def _look(clients: Clients, *, is_first: bool) -> tuple[Found, ...]:
    """What is in no region is asked for once."""
    return look(clients, None, KINDS if is_first else REGIONAL_KINDS)
