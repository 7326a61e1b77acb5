"""What people write for GPUs (`h100:8`, `8xh100`, `h100-80gb.sxm.8x`), and the instance types that fit it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl_infra.catalog.instance import InstanceType

EXAMPLES = "h100:8, 8xh100, h100-80gb.sxm.8x"
_PREFIX_COUNT = re.compile(r"(\d+)\s*x\s*(.+)")
_SUFFIX_COUNT = re.compile(r"(.+?)(?::\s*(\d+)|\.(\d+)x)")
_NAME = re.compile(r"([a-z][a-z0-9 _-]*?)(?:[-_ ]?(\d+)\s*gb)?(?:\.(sxm\d?|pcie))?")


class GpuSpecUnreadable(ValueError):
    """The text is not a GPU specification."""


@dataclass(frozen=True, kw_only=True)
class GpuSpec:
    """GPUs per node as asked for."""

    key: str
    """The name without blanks and dashes, lower case: `h100`."""
    count: int
    """Per node; 1 where none was written."""
    memory_gb: int | None


def parse_gpus(text: str) -> GpuSpec:
    """The specification in `text`. Raises GpuSpecUnreadable."""
    rest, count = _count(text.strip().lower())
    found = _NAME.fullmatch(rest)
    if found is None:
        raise GpuSpecUnreadable(f"not a GPU specification such as {EXAMPLES}")
    return GpuSpec(key=gpu_key(found[1]), count=count, memory_gb=None if found[2] is None else int(found[2]))


def gpu_key(name: str) -> str:
    """`name` in the form used for comparison: lower case, letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def fits_gpu(row: InstanceType, spec: GpuSpec) -> bool:
    """Whether a node of this type has that GPU, in whatever number."""
    return spec.key in gpu_keys(row) and spec.memory_gb in (None, _memory_gb(row))


def gpu_keys(row: InstanceType) -> tuple[str, ...]:
    """The names under which this type's GPU is found: the API's and people's. None for CPU types and parts of a GPU."""
    if row.gpu_api_name is None or row.gpu_name is None or row.gpu_name.endswith("part"):
        return ()
    spoken = row.gpu_name.rpartition(" ")[0]
    return tuple(sorted({gpu_key(row.gpu_api_name), gpu_key(spoken), gpu_key(row.gpu_api_name + row.gpu_name)}))


def counts_of(rows: Iterable[InstanceType]) -> dict[int, list[str]]:
    """GPU count → the names of the types that have as many, both ascending."""
    found: dict[int, list[str]] = {}
    for row in sorted(rows, key=lambda each: (each.gpu_count, each.name)):
        found.setdefault(row.gpu_count, []).append(row.name)
    return found


def _count(text: str) -> tuple[str, int]:
    if found := _PREFIX_COUNT.fullmatch(text):
        return found[2], int(found[1])
    if found := _SUFFIX_COUNT.fullmatch(text):
        return found[1], int(found[2] or found[3])
    return text, 1


def _memory_gb(row: InstanceType) -> int:
    assert row.gpu_name is not None
    return int(row.gpu_name.rpartition(" ")[2].removesuffix("GB"))
