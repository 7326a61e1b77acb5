"""One `<gpu>` of nvidia-smi's XML as a typed reading.

Element names: nvidia-smi(1) and NVIDIA's nvsmi_device DTD, versions 11 (r470 to r535), 12 (from r545) and 13 (by
r580), checked 2026-11. From r545 `clocks_throttle_reasons` is called `clocks_event_reasons` and `power_readings`
`gpu_power_readings`; both are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element, ParseError, XMLParser

from clusterctl.probes.probe import ProbeUnreadable

# Slowdowns that cost speed and have a cause outside the job; a power cap under full load is how GPUs are meant to run.
SLOWDOWNS = {
    "hw_thermal_slowdown": "thermal slowdown",
    "sw_thermal_slowdown": "thermal slowdown",
    "hw_power_brake_slowdown": "power brake",
    "hw_slowdown": "hardware slowdown",
}
_GPU = re.compile(r"<gpu id=.*?</gpu>", re.DOTALL)
_LOST = frozenset({"GPU is lost", "[GPU is lost]"})
_UNKNOWN = _LOST | frozenset(
    {
        "",
        "N/A",
        "[N/A]",
        "Not Supported",
        "[Not Supported]",
        "Unknown Error",
        "[Unknown Error]",
        "ERR!",
        "Requested functionality has been deprecated",
    }
)


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A GPU that answers; None: it does not report the value."""

    index: int
    bus_id: str | None
    name: str
    uuid: str | None = None
    utilization_percent: float | None = None
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_mhz: float | None = None
    sm_max_mhz: float | None = None
    slowdowns: tuple[str, ...] = ()
    is_power_capped: bool = False
    is_ecc_on: bool | None = None
    ecc_uncorrected: int | None = None
    """Since the driver was loaded."""
    ecc_corrected: int | None = None
    remapped_rows: int = 0
    is_remap_pending: bool = False
    is_remap_failed: bool = False
    is_repair_pending: bool = False
    """A memory channel or a processor cluster is repaired by the next reset (from r580)."""
    is_unrepairable: bool = False
    """Memory that cannot be repaired, or more errors in on-chip memory than NVIDIA lets a GPU have (from r550)."""
    recovery_action: str | None = None
    """What the driver itself asks for (from r570): `GPU Reset`, `Node Reboot` …"""
    fabric_state: str | None = None
    """NVSwitch fabric: `Completed` when the GPU has been taken in, or refused; None without one."""
    fabric_status: str | None = None
    """Whether it was taken in: `Success`, or an error. It means nothing until `fabric_state` is `Completed`
    (nvmlGpuFabricInfo_t in nvml.h, 2026-11)."""
    fabric_health: str | None = None
    """`Healthy`, or what the fabric has become since (by r580, where the fabric reports it)."""
    mig_devices: int | None = None
    """None when MIG is off."""
    processes: int = 0


def gpu_blocks(text: str) -> list[Element]:
    """The whole `<gpu>` elements in the text, also of a document that was cut short. Raises ProbeUnreadable."""
    try:
        return [_parsed(match[0]) for match in _GPU.finditer(text)]
    except ParseError as e:
        raise ProbeUnreadable(f"nvidia-smi's XML is broken: {e}") from e


def text_of(text: str, tag: str) -> str | None:
    """The text of the first element with this tag; None if there is none, or it says that it is not known."""
    match = re.search(rf"<{tag}>([^<]*)</{tag}>", text)
    return None if match is None else _known(match[1])


def is_lost(gpu: Element) -> bool:
    """Whether this is a GPU that does not answer any more; the element then has what the driver still knows of it."""
    return any((element.text or "").strip() in _LOST for element in gpu.iter())


def read_gpu(gpu: Element, index: int) -> Gpu:
    """The reading of one element."""
    power = "gpu_power_readings" if gpu.find("gpu_power_readings") is not None else "power_readings"
    limit = _number(gpu, f"{power}/current_power_limit")
    memory = _memory(gpu)
    return Gpu(
        index=index,
        bus_id=bus_key(gpu.get("id", "")),
        name=_text(gpu, "product_name") or "GPU",
        uuid=_text(gpu, "uuid"),
        utilization_percent=_number(gpu, "utilization/gpu_util"),
        memory_used_mib=memory[0],
        memory_total_mib=memory[1],
        temperature_c=_number(gpu, "temperature/gpu_temp"),
        power_w=_first(gpu, f"{power}/power_draw", f"{power}/instant_power_draw", f"{power}/average_power_draw"),
        power_limit_w=limit if limit is not None else _number(gpu, f"{power}/power_limit"),
        sm_mhz=_number(gpu, "clocks/sm_clock"),
        sm_max_mhz=_number(gpu, "max_clocks/sm_clock"),
        slowdowns=_slowdowns(gpu),
        is_power_capped=_is_active(gpu, "sw_power_cap"),
        is_ecc_on={"Enabled": True, "Disabled": False}.get(_text(gpu, "ecc_mode/current_ecc") or ""),
        ecc_uncorrected=_ecc(gpu, "_uncorrectable", "double_bit/total"),
        ecc_corrected=_ecc(gpu, "_correctable", "single_bit/total"),
        remapped_rows=sum(int(_number(gpu, f"remapped_rows/remapped_row_{kind}") or 0) for kind in ("corr", "unc")),
        is_remap_pending="Yes"
        in (_text(gpu, "remapped_rows/remapped_row_pending"), _text(gpu, "retired_pages/pending_retirement")),
        is_remap_failed=_text(gpu, "remapped_rows/remapped_row_failure") == "Yes",
        is_repair_pending=any(
            _text(gpu, f"ecc_errors/{part}_repair_pending") not in (None, "No") for part in ("channel", "tpc")
        ),
        is_unrepairable="Yes"
        in (_text(gpu, "ecc_errors/unrepairable_memory"), _text(gpu, "ecc_errors/aggregate/sram_threshold_exceeded")),
        recovery_action=_action(gpu),
        fabric_state=_text(gpu, "fabric/state"),
        fabric_status=_text(gpu, "fabric/status"),
        fabric_health=_text(gpu, "fabric/health/summary"),
        mig_devices=len(gpu.findall("mig_devices/mig_device"))
        if _text(gpu, "mig_mode/current_mig") == "Enabled"
        else None,
        processes=len(gpu.findall("processes/process_info")),
    )


def _parsed(block: str) -> Element:
    # Only the block itself is given to the parser: without a document type there are no entities to expand.
    parser = XMLParser()
    parser.feed(block)
    return parser.close()


def _known(text: str | None) -> str | None:
    text = (text or "").strip()
    return None if text in _UNKNOWN else text


def _text(gpu: Element, path: str) -> str | None:
    return _known(gpu.findtext(path))


def _number(gpu: Element, path: str) -> float | None:
    match = re.match(r"-?\d+(?:\.\d+)?", _text(gpu, path) or "")
    return None if match is None else float(match[0])


def _first(gpu: Element, *paths: str) -> float | None:
    return next((value for path in paths if (value := _number(gpu, path)) is not None), None)


def _memory(gpu: Element) -> tuple[float | None, float | None]:
    """Memory used and in all, in MiB; with MIG, if the GPU does not report what is used, its MIG devices do."""
    used, total = _number(gpu, "fb_memory_usage/used"), _number(gpu, "fb_memory_usage/total")
    parts = [_number(device, "fb_memory_usage/used") for device in gpu.findall("mig_devices/mig_device")]
    if used is None and parts:
        used = sum(part or 0.0 for part in parts)
    return used, total


def _is_active(gpu: Element, reason: str) -> bool:
    return "Active" in (
        _text(gpu, f"clocks_event_reasons/clocks_event_reason_{reason}"),
        _text(gpu, f"clocks_throttle_reasons/clocks_throttle_reason_{reason}"),
    )


def _slowdowns(gpu: Element) -> tuple[str, ...]:
    """The active slowdowns, each once; the general `hardware slowdown` only if no other says what it is."""
    active = [reason for reason in SLOWDOWNS if _is_active(gpu, reason)]
    if len(active) > 1 and "hw_slowdown" in active:
        active.remove("hw_slowdown")
    return tuple(dict.fromkeys(SLOWDOWNS[reason] for reason in active))


def _ecc(gpu: Element, kind: str, older: str) -> int | None:
    """The sum of the volatile counters of this kind; `older`: the path of the counter that Volta and earlier have."""
    volatile = gpu.find("ecc_errors/volatile")
    if volatile is None:
        return None
    counts = [_number(volatile, child.tag) for child in volatile if kind in child.tag]
    counts.append(_number(volatile, older))
    known = [count for count in counts if count is not None]
    return int(sum(known)) if known else None


def _action(gpu: Element) -> str | None:
    action = _text(gpu, "gpu_recovery_action")
    if action not in (None, "None"):
        return action
    return "GPU Reset" if _text(gpu, "gpu_reset_status/reset_required") == "Yes" else None


_ADDRESS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})", re.IGNORECASE)


def bus_key(text: str) -> str | None:
    """`0000:9b:00` for `00000000:9B:00.0`, `GPU0000:9B:00.0` and `PCI:0000:9b:00`; None without an address."""
    match = _ADDRESS.search(text)
    return None if match is None else f"{int(match[1], 16):04x}:{match[2]}:{match[3]}".lower()
