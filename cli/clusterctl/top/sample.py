"""One line of a node's sampler, typed. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl_infra.strict_json import LARGEST_NUMBER, NotAsExpected, parsed_object, shortened, whole_number

MOST_LINE_BYTES = 256 * 1024
MOST_GPUS = 64
GPU_WORDS = 9
MOST_CPUS = 100_000
KIB_PER_GIB = 1024**2

# Bits of nvidia-smi's reasons: hardware slowdown, software thermal, hardware thermal, power brake (nvml.h, checked
# 2026-11). The others are normal operation.
SLOWED_BITS = 0x8 | 0x20 | 0x40 | 0x80


@dataclass(frozen=True, kw_only=True)
class GpuSample:
    """One GPU now; what it does not report is None."""

    index: int
    utilization_percent: float | None
    memory_used_mib: float | None
    memory_total_mib: float | None
    power_w: float | None
    power_limit_w: float | None
    temperature_c: float | None
    sm_mhz: float | None
    is_slowed: bool


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A node at one moment of its own clock."""

    at_s: float
    gpus: tuple[GpuSample, ...]
    error: str | None
    """What nvidia-smi said instead of an answer."""
    load: float
    cpus: int
    memory_total_gib: float
    memory_available_gib: float
    received_bytes: int
    sent_bytes: int


def parse_sample(line: bytes) -> Sample | None:
    """The sample in one line; None for a line that is no JSON object, such as a login's greeting.

    Raises NotAsExpected for an object that is no sample.
    """
    if not line.lstrip().startswith(b"{"):
        return None
    row = parsed_object(line, most_bytes=MOST_LINE_BYTES)
    memory = row.numbers("memory_kib", count=2)
    return Sample(
        at_s=row.number("at_s", low=0),
        gpus=tuple(_gpu(words) for words in row.lists_of_texts("gpus", most=MOST_GPUS)),
        error=row.text("error", most=1000) or None,
        load=row.number("load", low=0),
        cpus=row.whole("cpus", high=MOST_CPUS),
        memory_total_gib=memory[0] / KIB_PER_GIB,
        memory_available_gib=memory[1] / KIB_PER_GIB,
        received_bytes=row.whole("received_bytes"),
        sent_bytes=row.whole("sent_bytes"),
    )


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Bytes per second between two samples."""

    received_per_s: float
    sent_per_s: float


def rates_between(before: Sample | None, now: Sample) -> Rates | None:
    """The rates between two samples; None without an earlier one, and when the counters were reset."""
    if before is None or now.at_s <= before.at_s:
        return None
    received, sent = now.received_bytes - before.received_bytes, now.sent_bytes - before.sent_bytes
    if received < 0 or sent < 0:
        return None
    seconds = now.at_s - before.at_s
    return Rates(received_per_s=received / seconds, sent_per_s=sent / seconds)


def _gpu(words: tuple[str, ...]) -> GpuSample:
    index = whole_number(words[0]) if len(words) == GPU_WORDS else None
    if index is None:
        raise NotAsExpected(f"gpus: {shortened(' '.join(words))} is no row of nvidia-smi's")
    numbers = [_number(word) for word in words[1:8]]
    use, used, total, power, limit, temperature, clock = numbers
    try:
        reasons = int(words[8], 16)
    except ValueError:
        reasons = 0
    return GpuSample(
        index=index,
        utilization_percent=use,
        memory_used_mib=used,
        memory_total_mib=total,
        power_w=power,
        power_limit_w=limit,
        temperature_c=temperature,
        sm_mhz=clock,
        is_slowed=bool(reasons & SLOWED_BITS),
    )


def _number(word: str) -> float | None:
    """The number in a word of nvidia-smi; None for what is no number, or none that a GPU can have."""
    try:
        number = float(word)
    except ValueError:
        return None
    return number if abs(number) <= LARGEST_NUMBER else None
