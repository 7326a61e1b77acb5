"""The table of `clusterctl sweep`, and its JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any  # readings of every shape

from clusterctl_infra.outputs import Inventory

from clusterctl.probes.finding import Finding, sentences_of
from clusterctl.probes.gpu_xml import Gpu
from clusterctl.probes.readings import Readings
from clusterctl.probes.report import NodeReport, SweepReport
from clusterctl.ssh.failure_hints import failure_line
from clusterctl.ssh.failures import node_failure_json
from clusterctl.text.headline import hardware, rehearsed
from clusterctl.text.quantities import count
from clusterctl.text.table import render_table

NONE = "–"
MIB_PER_GIB = 1024
MOST_SENTENCES = 3
OWN_CLOCK_WORTH_TELLING_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: which probe it needs, and its text for a node. `is_usual`: shown when no probe was named."""

    header: str
    probe: str
    cell: Callable[[Readings], str]
    is_usual: bool = True


def sweep_text(report: SweepReport, *, probes: Collection[str], is_chosen: bool) -> str:
    """The title and a line per node; `is_chosen`: the person named the probes."""
    inventory = report.inventory
    has_gpus = inventory.gpus_per_node > 0
    title = f"{inventory.name} · {hardware(inventory)}{rehearsed(inventory.rehearsal, has_gpus)}"
    columns = [
        column
        for column in COLUMNS
        if column.probe in probes and (column.is_usual if has_gpus and not is_chosen else _suits(column, has_gpus))
    ]
    rows = [
        [node.answer.node.name, *(column.cell(node.answer.readings) for column in columns), verdict(node, inventory)]
        for node in report.nodes
    ]
    table = render_table(["node", *(column.header for column in columns), "verdict"], rows, right=RIGHT)
    return "\n".join([title, table, *_remarks(report)])


def verdict(node: NodeReport, inventory: Inventory) -> str:
    """`ok`, or what is wrong: faults first, the rest counted."""
    failure = node.answer.failure
    failures = [] if failure is None else [failure_line(failure, inventory, node.answer.node)]
    sentences = failures + sentences_of(node.findings)
    if not sentences:
        return "ok"
    rest = len(sentences) - MOST_SENTENCES
    return "; ".join(sentences[:MOST_SENTENCES]) + (f"; and {rest} more (--json)" if rest > 0 else "")


def summary(report: SweepReport) -> str | None:
    """`2 of 4 nodes have a fault`; None when none has."""
    if not report.wrong:
        return None
    has = "has" if len(report.wrong) == 1 else "have"
    return f"{len(report.wrong)} of {count(len(report.nodes), 'node')} {has} a fault"


def _suits(column: Column, has_gpus: bool) -> bool:
    return has_gpus or (column.probe not in ("gpu", "nvlink") and column.header != "xid")


def _remarks(report: SweepReport) -> list[str]:
    off_s = report.own_offset_s
    if abs(off_s) <= OWN_CLOCK_WORTH_TELLING_S:
        return []
    side = "behind" if off_s > 0 else "ahead of"
    return [f"  this computer's clock is {abs(off_s):.1f} s {side} the nodes' clocks"]


def _gpus(readings: Readings) -> tuple[Gpu, ...]:
    return () if readings.gpu is None else readings.gpu.gpus


def _count(readings: Readings) -> str:
    return NONE if readings.gpu is None else str(len(readings.gpu.gpus))


def _mean_use(readings: Readings) -> str:
    uses = [gpu.utilization_percent for gpu in _gpus(readings) if gpu.utilization_percent is not None]
    return f"{sum(uses) / len(uses):.0f} %" if uses else NONE


def _memory(readings: Readings) -> str:
    pairs = [
        (gpu.memory_used_mib, gpu.memory_total_mib)
        for gpu in _gpus(readings)
        if gpu.memory_used_mib is not None and gpu.memory_total_mib is not None
    ]
    used, total = max(pairs, default=(None, None))
    return NONE if used is None or total is None else f"{used / MIB_PER_GIB:.0f}/{total / MIB_PER_GIB:.0f} GiB"


def _hottest(readings: Readings) -> str:
    seen = [gpu.temperature_c for gpu in _gpus(readings) if gpu.temperature_c is not None]
    return f"{max(seen):.0f} °C" if seen else NONE


def _power(readings: Readings) -> str:
    seen = [gpu.power_w for gpu in _gpus(readings) if gpu.power_w is not None]
    return f"{sum(seen) / len(seen):.0f} W" if seen else NONE


def _clocks(readings: Readings) -> str:
    seen = [gpu.sm_mhz for gpu in _gpus(readings) if gpu.sm_mhz is not None]
    if not seen:
        return NONE
    return f"{min(seen):.0f}" + (" ↓" if any(gpu.slowdowns for gpu in _gpus(readings)) else "")


def _ecc(readings: Readings) -> str:
    seen = [gpu.ecc_uncorrected for gpu in _gpus(readings) if gpu.ecc_uncorrected is not None]
    return str(sum(seen)) if seen else NONE


def _xids(readings: Readings) -> str:
    codes = sorted({xid.code for xid in readings.kernel.xids}) if readings.kernel is not None else []
    return ",".join(map(str, codes)) or NONE


def _nvlinks(readings: Readings) -> str:
    links = (readings.nvlink or {}).values()
    up, down = sum(each.up for each in links), sum(each.down for each in links)
    return f"{up}/{up + down}" if up + down else NONE


def _efa(readings: Readings) -> str:
    return NONE if readings.efa is None or not readings.efa.devices else f"{readings.efa.active}/{readings.efa.devices}"


def _infiniband(readings: Readings) -> str:
    """`8/8 400`: active of all, and Gb/sec of the slowest that is active."""
    found = readings.infiniband
    if found is None or not found.ports:
        return NONE
    rates = [port.rate_gbps for port in found.ports if port.state == "ACTIVE"]
    return f"{found.active}/{len(found.ports)}{f' {min(rates):g}' if rates else ''}"


def _disk(readings: Readings) -> str:
    if not readings.disk:
        return NONE
    fullest = max(readings.disk, key=lambda disk: disk.used_percent)
    return f"{fullest.mount} {fullest.used_percent:.0f} %"


def _load(readings: Readings) -> str:
    return NONE if readings.load is None else f"{readings.load.load:.1f}/{readings.load.cpus}"


def _free_memory(readings: Readings) -> str:
    load = readings.load
    return NONE if load is None else f"{load.memory_available_gib:.0f}/{load.memory_total_gib:.0f} GiB"


def _clock(readings: Readings) -> str:
    offset_s = None if readings.clock is None else readings.clock.service_offset_s
    return NONE if offset_s is None else f"{offset_s * 1000:+.1f} ms"


def _driver(readings: Readings) -> str:
    return (readings.gpu.driver_version if readings.gpu is not None else None) or NONE


def _version(name: str) -> Callable[[Readings], str]:
    return lambda readings: (getattr(readings.versions, name) if readings.versions is not None else None) or NONE


COLUMNS = (
    Column(header="gpus", probe="gpu", cell=_count),
    Column(header="util", probe="gpu", cell=_mean_use),
    Column(header="mem", probe="gpu", cell=_memory),
    Column(header="temp", probe="gpu", cell=_hottest),
    Column(header="power", probe="gpu", cell=_power),
    Column(header="clocks", probe="gpu", cell=_clocks),
    Column(header="ecc", probe="gpu", cell=_ecc),
    Column(header="nvlinks", probe="nvlink", cell=_nvlinks, is_usual=False),
    Column(header="xid", probe="kernel", cell=_xids),
    Column(header="efa", probe="efa", cell=_efa, is_usual=False),
    Column(header="ib", probe="infiniband", cell=_infiniband, is_usual=False),
    Column(header="load", probe="load", cell=_load, is_usual=False),
    Column(header="free memory", probe="load", cell=_free_memory, is_usual=False),
    Column(header="fullest disk", probe="disk", cell=_disk, is_usual=False),
    Column(header="clock", probe="clock", cell=_clock, is_usual=False),
    Column(header="driver", probe="gpu", cell=_driver),
    Column(header="cuda", probe="versions", cell=_version("cuda"), is_usual=False),
    Column(header="nccl", probe="versions", cell=_version("nccl"), is_usual=False),
    Column(header="kernel", probe="versions", cell=_version("kernel"), is_usual=False),
)
RIGHT = {"gpus", "util", "mem", "temp", "power", "ecc", "load", "clock"}


def sweep_json(report: SweepReport) -> dict[str, object]:
    """Every reading and every finding; what is not known is null."""
    return {
        "cluster": report.inventory.cluster,
        "cluster_id": report.inventory.cluster_id,
        "rehearsal": report.inventory.rehearsal,
        "medians": dataclasses.asdict(report.usual),
        "versions": dict(report.versions),
        "own_clock_offset_s": round(report.own_offset_s, 3),
        "wrong": [node.answer.node.name for node in report.wrong],
        "nodes": [_node(node) for node in report.nodes],
    }


def _node(report: NodeReport) -> dict[str, object]:
    answer = report.answer
    node = answer.node
    return {
        **node_failure_json(node.name, slot=node.slot, rank=node.rank, failure=answer.failure),
        "wrong": report.is_wrong,
        "findings": [_finding(finding) for finding in report.findings],
        "readings": {
            field.name: _plain(getattr(answer.readings, field.name)) for field in dataclasses.fields(answer.readings)
        },
    }


def _finding(finding: Finding) -> dict[str, object]:
    return dataclasses.asdict(finding)


def _plain(value: Any) -> Any:
    """Dataclasses as objects, at any depth; keys as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value
