"""What is wrong with a node's GPUs, alone and compared with the cluster's other GPUs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from clusterctl.probes.finding import Finding
from clusterctl.probes.gpu import GpuReading
from clusterctl.probes.gpu_xml import Gpu
from clusterctl.probes.readings import Readings
from clusterctl.text.next_commands import gpu_reset, replace_slot
from clusterctl.text.quantities import count

FEWEST_FOR_A_MEDIAN = 3
HOT_C = 85.0
"""Somewhat below where data center GPUs slow themselves down (H100: 87 °C, A100: 92 °C by nvidia-smi -q)."""
HOTTER_THAN_MEDIAN_C = 12.0
LIKE_LOAD_PERCENT = 20.0
"""Temperatures are compared between GPUs whose utilization is no further apart: work makes each of them hotter."""
BUSY_PERCENT = 50.0
"""From this median utilization on, the cluster counts as working, and a GPU that works far less stands out."""
LOW_SHARE = 0.5
SLOW_CLOCK_SHARE = 0.85
FABRIC_ANSWERED, FABRIC_ACCEPTED, FABRIC_HEALTHY = "Completed", "Success", "Healthy"


@dataclass(frozen=True, kw_only=True)
class Medians:
    """The medians over all GPUs of the cluster that answered; None with too few of them."""

    utilization_percent: float | None
    temperature_c: float | None
    power_w: float | None
    sm_mhz: float | None


def medians(gpus: Sequence[Gpu]) -> Medians:
    """The median of each value over these GPUs."""
    return Medians(
        utilization_percent=_median(gpu.utilization_percent for gpu in gpus),
        temperature_c=_median(gpu.temperature_c for gpu in gpus),
        power_w=_median(gpu.power_w for gpu in gpus),
        sm_mhz=_median(gpu.sm_mhz for gpu in gpus),
    )


@dataclass(frozen=True, kw_only=True)
class Usual:
    """What a GPU is compared with."""

    medians: Medians
    temperature_c_at: Mapping[float | None, float | None]
    """Utilization in percent → the median temperature of the GPUs at a similar load; the key None, for a GPU that does
    not report its utilization, has the median of all."""


def usual_of(gpus: Sequence[Gpu]) -> Usual:
    """The usual values of these GPUs, which are all of the cluster that answered."""
    loads = dict.fromkeys(gpu.utilization_percent for gpu in gpus)
    at = {load: _median(gpu.temperature_c for gpu in gpus if _is_like(gpu, load)) for load in loads}
    return Usual(medians=medians(gpus), temperature_c_at=at)


def gpu_findings(readings: Readings, *, cluster: str, slot: int, expected: int, usual: Usual) -> list[Finding]:
    """All findings about a node's GPUs; `expected`: how many GPUs its instance type has."""
    reading = readings.gpu
    if reading is None:
        return []
    if reading.trouble is not None:
        return [Finding(level="fault", kind=reading.trouble)] if expected else []
    replace = replace_slot(cluster, slot)
    found = [*_missing(reading, readings, expected=expected, replace=replace)]
    for gpu in reading.gpus:
        found += [
            *_broken(gpu, replace=replace, reset=gpu_reset(cluster, slot, gpu.index)),
            *_slowed(gpu, usual),
            *_unusual(gpu, usual),
        ]
    for index, links in (readings.nvlink or {}).items():
        if links.down:
            detail = f"{links.down} of {links.up + links.down}"
            found.append(Finding(level="fault", kind="NVLinks down", detail=detail, gpu=index))
    return found


def _missing(reading: GpuReading, readings: Readings, *, expected: int, replace: str) -> Iterator[Finding]:
    xids = readings.kernel.xids if readings.kernel is not None else ()
    for lost in reading.lost:
        codes = [xid.code for xid in xids if xid.bus_id == lost.bus_id and not xid.is_switch]
        is_off_the_bus = 79 in codes or "lost" in lost.message
        yield Finding(
            level="fault",
            kind="fallen off the bus" if is_off_the_bus else "does not answer",
            detail="Xid 79" if 79 in codes else lost.message,
            gpu=lost.index,
            next=replace,
        )
    there = len(reading.gpus) + len(reading.lost)
    if there < expected:
        detail = f"the type has {expected}"
        yield Finding(level="fault", kind=f"only {count(there, 'GPU')}", detail=detail, next=replace)


def _broken(gpu: Gpu, *, replace: str, reset: str) -> Iterator[Finding]:
    if gpu.is_remap_failed:
        yield Finding(level="fault", kind="a memory row could not be remapped", gpu=gpu.index, next=replace)
    if gpu.is_remap_pending:
        kind = "a memory row needs a reset to be remapped"
        yield Finding(level="fault", kind=kind, gpu=gpu.index, next=reset)
    if gpu.is_repair_pending:
        yield Finding(level="fault", kind="a repair waits for a reset", gpu=gpu.index, next=reset)
    if gpu.is_unrepairable:
        yield Finding(level="fault", kind="memory that cannot be repaired", gpu=gpu.index, next=replace)
    if gpu.ecc_uncorrected:
        detail = f"{gpu.ecc_uncorrected} since the driver was loaded"
        yield Finding(level="fault", kind="uncorrectable ECC errors", detail=detail, gpu=gpu.index)
    if gpu.recovery_action is not None:
        yield Finding(level="fault", kind="the driver asks for a recovery", detail=gpu.recovery_action, gpu=gpu.index)
    if gpu.fabric_state not in (None, FABRIC_ANSWERED):
        yield Finding(level="fault", kind="the NVSwitch fabric is not up", detail=gpu.fabric_state, gpu=gpu.index)
    elif gpu.fabric_status not in (None, FABRIC_ACCEPTED):
        kind = "the NVSwitch fabric did not accept the GPU"
        yield Finding(level="fault", kind=kind, detail=gpu.fabric_status, gpu=gpu.index)
    elif gpu.fabric_health not in (None, FABRIC_HEALTHY):
        yield Finding(level="fault", kind="the NVSwitch fabric is not healthy", detail=gpu.fabric_health, gpu=gpu.index)
    if gpu.is_ecc_on is False:
        yield Finding(level="remark", kind="ECC is off", gpu=gpu.index)
    if gpu.mig_devices is not None:
        yield Finding(level="remark", kind="MIG is on", detail=f"{gpu.mig_devices} instances", gpu=gpu.index)


def _slowed(gpu: Gpu, usual: Usual) -> Iterator[Finding]:
    for reason in gpu.slowdowns:
        detail = _celsius(gpu, usual) if "thermal" in reason else _clock(gpu)
        yield Finding(level="fault", kind=reason, detail=detail, gpu=gpu.index)


def _unusual(gpu: Gpu, usual: Usual) -> Iterator[Finding]:
    overall, usual_c = usual.medians, usual.temperature_c_at.get(gpu.utilization_percent)
    temperature, use, clock = gpu.temperature_c, gpu.utilization_percent, gpu.sm_mhz
    is_slowed_by_heat = any("thermal" in reason for reason in gpu.slowdowns)
    if temperature is not None and not is_slowed_by_heat:
        is_apart = usual_c is not None and temperature > usual_c + HOTTER_THAN_MEDIAN_C
        if temperature >= HOT_C or is_apart:
            yield Finding(level="remark", kind="hot", detail=_celsius(gpu, usual), gpu=gpu.index)
    if overall.utilization_percent is None or overall.utilization_percent < BUSY_PERCENT:
        return
    if use is not None and use < LOW_SHARE * overall.utilization_percent:
        detail = f"{use:.0f} %; median {overall.utilization_percent:.0f} %"
        yield Finding(level="remark", kind="low utilization", detail=detail, gpu=gpu.index)
    elif clock is not None and overall.sm_mhz and clock < SLOW_CLOCK_SHARE * overall.sm_mhz and not gpu.slowdowns:
        detail = f"{clock:.0f} MHz; median {overall.sm_mhz:.0f} MHz"
        yield Finding(level="fault", kind="clocks low", detail=detail, gpu=gpu.index)


def _is_like(gpu: Gpu, load_percent: float | None) -> bool:
    if gpu.utilization_percent is None or load_percent is None:
        return load_percent is None
    return abs(gpu.utilization_percent - load_percent) <= LIKE_LOAD_PERCENT


def _celsius(gpu: Gpu, usual: Usual) -> str | None:
    if gpu.temperature_c is None:
        return None
    seen = f"{gpu.temperature_c:.0f} °C"
    usual_c = usual.temperature_c_at.get(gpu.utilization_percent)
    return seen if usual_c is None else f"{seen}; median {usual_c:.0f} °C"


def _clock(gpu: Gpu) -> str | None:
    if gpu.sm_mhz is None or gpu.sm_max_mhz is None:
        return None
    return f"{gpu.sm_mhz:.0f} of {gpu.sm_max_mhz:.0f} MHz"


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if len(known) >= FEWEST_FOR_A_MEDIAN else None
