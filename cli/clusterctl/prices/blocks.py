"""Capacity blocks to choose among: what may be asked for, and the table of what is offered."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime

from clusterctl_infra.catalog.gpus import GpuSpecUnreadable
from clusterctl_infra.catalog.instance import InstanceType
from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.block_search import MOST_INSTANCES, hours_problem
from clusterctl_infra.errors import NothingMatched, UsageError
from clusterctl_infra.nearest import did_you_mean

from clusterctl.cloud.block_offerings import BlockOffering, BlockRequest
from clusterctl.text.instant import parse_instant
from clusterctl.text.quantities import UNKNOWN, usd
from clusterctl.text.table import render_table

BLOCK_USAGE_CLASS = "capacity-block"
RIGHT = {"hours", "in all", "$/h", "$/gpu h"}


def block_request(
    catalog: Catalog, wanted: str, *, nodes: int, hours: int, starts_from: datetime | None
) -> BlockRequest:
    """The request that AWS can be asked. Raises UsageError, NothingMatched."""
    if nodes > MOST_INSTANCES:
        raise UsageError(f"--nodes {nodes}: AWS sells blocks of at most {MOST_INSTANCES} machines")
    problem = hours_problem(hours)
    if problem is not None:
        raise UsageError(f"--hours {hours}: {problem}")
    return BlockRequest(instance_types=_types(catalog, wanted), instances=nodes, hours=hours, starts_from=starts_from)


def parse_start(text: str, *, now: datetime) -> datetime:
    """The moment of `--start`. Raises UsageError."""
    try:
        return parse_instant(text, now=now)
    except ValueError as e:
        raise UsageError(f"--start: {e}", hint="clusterctl capacity --help") from e


def blocks_text(found: Sequence[BlockOffering], catalog: Catalog, *, region: str, is_rehearsal: bool) -> str:
    """The table and how to buy a block, or a sentence that there is none."""
    if not found:
        return (
            f"AWS offers no such block in {region} now: try fewer --nodes, other --hours, another --start, or another "
            "--region"
        )
    header = ["offering", "type", "zone", "begins (UTC)", "ends (UTC)", "hours", "in all", "$/h", "$/gpu h"]
    table = render_table(header, [_cells(row, catalog) for row in found], right=RIGHT)
    how = "with capacity_block: {find: {hours: …}} in cluster.yaml, clusterctl up buys the cheapest, once you agree"
    if is_rehearsal:
        return f"{table}\n  rehearsed: the price on demand stands for AWS's, and nothing is paid\n  {how}"
    return f"{table}\n  the sum is paid at once and not refunded\n  {how}"


def blocks_json(found: Sequence[BlockOffering]) -> list[dict[str, object]]:
    """What `--json` prints; a sum that is not known is null."""
    return [
        {**dataclasses.asdict(row), "starts_at": row.starts_at.isoformat(), "ends_at": row.ends_at.isoformat()}
        for row in found
    ]


def _types(catalog: Catalog, wanted: str) -> tuple[str, ...]:
    """The type with this name, or the types with these GPUs; only those of which AWS sells capacity blocks."""
    named = catalog.instance_type(wanted)
    rows = [named] if named is not None else _with_gpus(catalog, wanted)
    if not rows:
        raise NothingMatched(
            f"{wanted}: no instance type, and no GPUs of one, such as h100:8{did_you_mean(wanted, catalog.names())}",
            hint="clusterctl prices",
        )
    sold = tuple(row.name for row in rows if BLOCK_USAGE_CLASS in row.usage_classes)
    if not sold:
        others = ", ".join(row.name for row in catalog.types.values() if BLOCK_USAGE_CLASS in row.usage_classes)
        raise UsageError(f"{wanted}: AWS sells no capacity blocks of it; it does of {others}")
    return sold


def _with_gpus(catalog: Catalog, wanted: str) -> list[InstanceType]:
    try:
        return catalog.for_gpus(wanted)
    except GpuSpecUnreadable:
        return []


def _cells(row: BlockOffering, catalog: Catalog) -> list[str]:
    machine_hours = row.hours * row.instances
    kind = catalog.instance_type(row.instance_type)
    gpus = 0 if kind is None else kind.gpu_count
    return [
        row.offering_id,
        f"{row.instances} × {row.instance_type}",
        row.zone,
        f"{row.starts_at:%Y-%m-%d %H:%M}",
        f"{row.ends_at:%Y-%m-%d %H:%M}",
        str(row.hours),
        usd(row.fee_usd),
        _each(row.fee_usd, machine_hours),
        _each(row.fee_usd, machine_hours * gpus),
    ]


def _each(fee_usd: float | None, count: int) -> str:
    return UNKNOWN if fee_usd is None or count <= 0 else f"${fee_usd / count:.2f}"
