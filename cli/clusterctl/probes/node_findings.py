"""What is wrong with a node apart from its GPUs' own numbers: AWS, kernel, fabric, disk, load. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.probes.efa import ERROR_COUNTERS, EfaReading
from clusterctl.probes.finding import Finding, Level
from clusterctl.probes.kernel_log import XidEvent
from clusterctl.probes.readings import Readings
from clusterctl.probes.xid import xid_kind
from clusterctl.text.next_commands import gpu_reset, replace_slot
from clusterctl.text.quantities import count

FULL_PERCENT, ALMOST_FULL_PERCENT = 97.0, 90.0
LOAD_PER_CPU = 2.0
LITTLE_MEMORY_SHARE = 0.05


def node_findings(readings: Readings, *, cluster: str, slot: int, efa_devices: int) -> list[Finding]:
    """All findings about a node apart from its GPUs' own numbers; `efa_devices`: how many most nodes have."""
    return [
        *_spot(readings),
        *_from_kernel(readings, cluster, slot),
        *_fabric(readings.efa, efa_devices),
        *_disk(readings),
        *_load(readings),
        *_unread(readings),
    ]


def _spot(readings: Readings) -> Iterator[Finding]:
    spot = readings.spot
    if spot is not None and spot.notice is not None:
        is_taken = spot.notice == "interruption"
        kind = "AWS takes it back" if is_taken else "AWS may take it back soon"
        detail = f"spot; at {spot.time}" if is_taken else f"spot; it said so at {spot.time}"
        yield Finding(level="remark", kind=kind, detail=detail)


def _from_kernel(readings: Readings, cluster: str, slot: int) -> Iterator[Finding]:
    kernel = readings.kernel
    if kernel is None:
        return
    for xid in kernel.xids:
        finding = _xid(xid, readings, cluster, slot)
        if finding is not None:
            yield finding
    if kernel.killed:
        yield Finding(level="remark", kind="killed for lack of memory", detail=", ".join(sorted(set(kernel.killed))))
    if not kernel.is_readable:
        yield Finding(level="remark", kind="the kernel's log cannot be read")


def _xid(xid: XidEvent, readings: Readings, cluster: str, slot: int) -> Finding | None:
    """The finding about an Xid; None for Xid 79 of a lost GPU, whose own finding names it."""
    if xid.is_switch:
        return Finding(level="fault", kind=f"NVSwitch SXid {xid.code}", detail=xid.message or None)
    gpu = _gpu_at(xid.bus_id, readings)
    lost = {lost.bus_id for lost in (readings.gpu.lost if readings.gpu is not None else ())}
    if xid.bus_id in lost and xid.code == 79:
        return None
    kind = xid_kind(xid.code)
    times = "" if xid.count == 1 else f"{xid.count} times; "
    detail = times + (kind.name or xid.message or "see NVIDIA's Xid catalog")
    if xid.program is not None and kind.remedy in ("program", "restart"):
        detail += f"; program {xid.program}" + (" was hit: start it again" if kind.remedy == "restart" else "")
    helps = {
        "replace": replace_slot(cluster, slot),
        "reset": gpu_reset(cluster, slot, gpu),
    }.get(kind.remedy)
    level: Level = "fault" if kind.remedy in ("replace", "reset") else "remark"
    return Finding(level=level, kind=f"Xid {xid.code}", detail=detail, gpu=gpu, next=helps)


def _gpu_at(bus_id: str | None, readings: Readings) -> int | None:
    if readings.gpu is None or bus_id is None:
        return None
    places = {gpu.bus_id: gpu.index for gpu in readings.gpu.gpus}
    places.update({lost.bus_id: lost.index for lost in readings.gpu.lost})
    return places.get(bus_id)


def _fabric(efa: EfaReading | None, devices: int) -> Iterator[Finding]:
    if efa is None:
        return
    if efa.devices < devices:
        there = count(efa.devices, "EFA device")
        yield Finding(level="fault", kind=f"only {there}", detail=f"other nodes have {devices}")
    if efa.active < efa.devices:
        detail = f"{efa.devices - efa.active} of {efa.devices}"
        yield Finding(level="fault", kind="EFA devices not active", detail=detail)
    errors = {name: efa.counters.get(name, 0) for name in ERROR_COUNTERS}
    counted = ", ".join(f"{name} {errors[name]}" for name in errors if errors[name])
    if counted:
        yield Finding(level="remark", kind="EFA errors", detail=counted)


def _disk(readings: Readings) -> Iterator[Finding]:
    for disk in readings.disk or ():
        if disk.used_percent >= ALMOST_FULL_PERCENT:
            detail = f"{disk.used_percent:.0f} %, {disk.free_gib:.0f} GiB left"
            is_full = disk.used_percent >= FULL_PERCENT
            kind = f"{disk.mount} is full" if is_full else f"{disk.mount} is almost full"
            yield Finding(level="fault" if is_full else "remark", kind=kind, detail=detail)


def _load(readings: Readings) -> Iterator[Finding]:
    load = readings.load
    if load is None:
        return
    if load.load > LOAD_PER_CPU * load.cpus:
        yield Finding(level="remark", kind="high load", detail=f"{load.load:.0f} on {load.cpus} processors")
    if load.memory_available_gib < LITTLE_MEMORY_SHARE * load.memory_total_gib:
        detail = f"{load.memory_available_gib:g} of {load.memory_total_gib:g} GiB left"
        yield Finding(level="remark", kind="little memory left", detail=detail)


def _unread(readings: Readings) -> Iterator[Finding]:
    for probe, why in readings.troubles.items():
        # A driver that does not answer nvidia-smi answers no job either.
        level: Level = "fault" if probe == "gpu" else "remark"
        yield Finding(level=level, kind=f"no reading of {probe}", detail=why)
