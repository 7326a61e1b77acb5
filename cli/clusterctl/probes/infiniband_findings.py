"""What is wrong with a node's InfiniBand, compared with most nodes of the cluster. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from clusterctl.probes.finding import Finding
from clusterctl.probes.infiniband import InfinibandReading
from clusterctl.probes.readings import Readings
from clusterctl.text.next_commands import on_slot
from clusterctl.text.quantities import count

T = TypeVar("T", int, float, tuple[str, ...])


@dataclass(frozen=True, kw_only=True)
class UsualInfiniband:
    """What most nodes have."""

    ports: int
    active: int
    """How many of them carry data: adapters with a second port that nobody ever cabled are common."""
    rate_gbps: float
    partitions: tuple[str, ...]


def usual_infiniband(readings: Sequence[Readings]) -> UsualInfiniband:
    """What most nodes have, by the readings of all; the greater value wins a tie."""
    found = [each.infiniband for each in readings if each.infiniband is not None]
    rates = [port.rate_gbps for each in found for port in each.ports if port.state == "ACTIVE"]
    return UsualInfiniband(
        ports=_most([len(each.ports) for each in found], 0),
        active=_most([each.active for each in found], 0),
        rate_gbps=_most(rates, 0.0),
        partitions=_most([_partitions(each) for each in found if each.active], ()),
    )


def infiniband_findings(
    reading: InfinibandReading | None, usual: UsualInfiniband, *, cluster: str, slot: int
) -> Iterator[Finding]:
    """Ports that are missing, down or slow, another partition, and GPUs that adapters do not reach."""
    if reading is None:
        return
    if len(reading.ports) < usual.ports:
        kind = f"only {count(len(reading.ports), 'InfiniBand port')}"
        yield Finding(level="fault", kind=kind, detail=f"other nodes have {usual.ports}")
    yield from _not_active(reading, usual)
    slow = [
        f"{port.name} {port.rate}"
        for port in reading.ports
        if port.state == "ACTIVE" and port.rate_gbps < usual.rate_gbps
    ]
    if slow:
        detail = f"{'; '.join(slow)}; most have {usual.rate_gbps:g} Gb/sec"
        yield Finding(level="fault", kind="InfiniBand slow", detail=detail)
    if reading.active and _partitions(reading) != usual.partitions:
        detail = f"{' '.join(_partitions(reading)) or 'none'}; most nodes have {' '.join(usual.partitions) or 'none'}"
        yield Finding(level="fault", kind="other InfiniBand partitions", detail=detail)
    if reading.ports and reading.gpus and not reading.has_peermem:
        yield Finding(
            level="remark",
            kind="nvidia_peermem is not loaded",
            detail="without it, or DMA-BUF, GPU data goes through the processor's memory",
            next=on_slot(cluster, slot, ["sudo", "modprobe", "nvidia_peermem"]),
        )


def _not_active(reading: InfinibandReading, usual: UsualInfiniband) -> Iterator[Finding]:
    """A fault where other nodes have more active ports, or a port has a link and no subnet manager made it active."""
    down = [port for port in reading.ports if port.state != "ACTIVE"]
    if not down:
        return
    is_fault = reading.active < usual.active or any(port.physical == "LinkUp" for port in down)
    names = "; ".join(f"{port.name} {port.state}, {port.physical}" for port in down)
    yield Finding(
        level="fault" if is_fault else "remark",
        kind="InfiniBand not active",
        detail=f"{names}; {count(reading.active, 'port')} ACTIVE, on most nodes {usual.active}",
    )


def _partitions(reading: InfinibandReading) -> tuple[str, ...]:
    return tuple(sorted({key for port in reading.ports if port.state == "ACTIVE" for key in port.partitions}))


def _most(values: Sequence[T], default: T) -> T:
    numbers = Counter(values)
    return max(numbers, key=lambda value: (numbers[value], value)) if values else default
