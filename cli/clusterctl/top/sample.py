"""One line of a node's sampler, typed. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass

# Bits of nvidia-smi's reasons: hardware slowdown, software thermal, hardware thermal, power brake (nvml.h, checked
# 2026-11). The others are how a GPU is meant to run.
SLOWED_BITS = 0x8 | 0x20 | 0x40 | 0x80


@dataclass(frozen=True, kw_only=True)
class GpuSample:
    """One GPU now; None is what it does not tell."""

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
    """The sample in one line; None for what is none, such as a login's greeting."""
    try:
        row = json.loads(line)
        return Sample(
            at_s=float(row["at_s"]),
            gpus=tuple(_gpu(words) for words in row["gpus"]),
            error=str(row["error"]) or None,
            load=float(row["load"]),
            cpus=int(row["cpus"]),
            memory_total_gib=row["memory_kib"][0] / 1024**2,
            memory_available_gib=row["memory_kib"][1] / 1024**2,
            received_bytes=int(row["received_bytes"]),
            sent_bytes=int(row["sent_bytes"]),
        )
    except (ValueError, KeyError, TypeError, IndexError):
        return None


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Bytes per second between two samples."""

    received_per_s: float
    sent_per_s: float


def rates_between(before: Sample | None, now: Sample) -> Rates | None:
    """None without an earlier sample, and when counters began anew."""
    if before is None or now.at_s <= before.at_s:
        return None
    received, sent = now.received_bytes - before.received_bytes, now.sent_bytes - before.sent_bytes
    if received < 0 or sent < 0:
        return None
    seconds = now.at_s - before.at_s
    return Rates(received_per_s=received / seconds, sent_per_s=sent / seconds)


def _gpu(words: list[str]) -> GpuSample:
    numbers = [_number(word) for word in words[1:8]]
    use, used, total, power, limit, temperature, clock = numbers
    try:
        reasons = int(words[8], 16)
    except ValueError:
        reasons = 0
    return GpuSample(
        index=int(words[0]),
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
    try:
        return float(word)
    except ValueError:
        return None
