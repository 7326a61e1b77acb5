"""One frame of the live view as cells of text and heat; the same for a terminal and for a file. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean

from clusterctl_infra.ledger import Ledger
from clusterctl_infra.outputs import Inventory

from clusterctl.status.ledger import spent_usd
from clusterctl.text.headline import ends, hardware, money, rehearsed
from clusterctl.top.board import NodeState, silence
from clusterctl.top.sample import GpuSample, Sample

NONE = "–"
MIB_PER_GIB = 1024
GPU_WIDTH = 4
NAME_WIDTH = 14
INDENT_WIDTH = 2
NUMBER_WIDTHS = {"util": 6, "memory": 12, "power": 9, "temp": 7}
LOAD_WIDTHS = {"load": 8, "memory": 15}
"""The columns of nodes without GPUs."""
NETWORK_WIDTHS = {"in": 11, "out": 11}
GIVEN_UP = ("out", "in", "power", "memory", "gpus", "temp", "util")
"""In this order, columns are left out where the terminal is too narrow for all: none is shown in half."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A piece of a line. `heat`: 0 … 1 colours it; `is_bad`: something is wrong here."""

    text: str
    heat: float | None = None
    is_bad: bool = False


Line = tuple[Cell, ...]
Key = Callable[[NodeState], float]


@dataclass(frozen=True, kw_only=True)
class Order:
    """A way to sort: the largest values first; nodes by name are in the order of their slots."""

    word: str
    key: Key


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The columns of a frame that fit beside each other."""

    name_width: int
    gpus: int
    """Cells, one for each GPU of a node; 0: none, or no room for all."""
    widths: Mapping[str, int]
    """Column → its width, from left to right."""


def layout_for(gpus_per_node: int, *, names: Iterable[str] = (), columns: int | None = None) -> Layout:
    """The columns for a terminal of this width; None: there is room for all."""
    widths = {**(NUMBER_WIDTHS if gpus_per_node else LOAD_WIDTHS), **NETWORK_WIDTHS}
    longest = max((len(name) for name in names), default=0)
    if columns is None:
        return Layout(name_width=max(NAME_WIDTH, longest), gpus=gpus_per_node, widths=widths)
    name_width, gpus = min(NAME_WIDTH, max(len("node"), longest)), gpus_per_node
    for given_up in GIVEN_UP:
        if INDENT_WIDTH + name_width + gpus * GPU_WIDTH + sum(widths.values()) <= columns:
            break
        if given_up == "gpus":
            gpus = 0
        widths.pop(given_up, None)
    return Layout(name_width=name_width, gpus=gpus, widths=widths)


def header(layout: Layout) -> str:
    """The line with the columns' names."""
    gpus = "".join(f"{f'g{index}':>{GPU_WIDTH}}" for index in range(layout.gpus))
    return f"{'node':<{layout.name_width}}{gpus}" + "".join(f"{name:>{n}}" for name, n in layout.widths.items())


def node_line(state: NodeState, gpus_per_node: int, layout: Layout, now_s: float) -> Line:
    """One node: a cell per GPU coloured by its use, then the node's sums and means."""
    name = Cell(text=f"{_shortened(state.name, layout.name_width):<{layout.name_width}}")
    sample = state.sample
    if (silent := silence(state, now_s)) is not None:
        return (name, Cell(text=f"  {silent.message}", is_bad=True))
    assert sample is not None
    gpus = {gpu.index: gpu for gpu in sample.gpus}
    cells = [_gpu_cell(gpus.get(index)) for index in range(layout.gpus)]
    trouble = [Cell(text=f"  {sample.error}", is_bad=True)] if sample.error and gpus_per_node else []
    texts = {**(_of_gpus(sample) if gpus_per_node else _of_the_machine(sample)), **_network(state)}
    numbers = "".join(f"{texts[column]:>{width}}" for column, width in layout.widths.items())
    return (name, *cells, Cell(text=numbers), *trouble)


def gpu_lines(state: NodeState, now_s: float) -> list[Line]:
    """An opened node: a line per GPU, and its processors and memory."""
    sample = state.sample
    if (silent := silence(state, now_s)) is not None:
        return [(Cell(text=f"{state.name}: {silent.message}", is_bad=True),)]
    assert sample is not None
    used = sample.memory_total_gib - sample.memory_available_gib
    processors = f"load {sample.load:.1f} of {sample.cpus} processors"
    lines: list[Line] = [
        (Cell(text=f"{state.name} · {processors} · memory {used:.0f}/{sample.memory_total_gib:.0f} GiB"),),
        (Cell(text=f"{'gpu':>4}{'util':>7}{'memory':>18}{'power':>12}{'temp':>8}{'clock':>10}"),),
    ]
    lines += [_gpu_line(gpu) for gpu in sample.gpus]
    if sample.error:
        lines.append((Cell(text=f"  {sample.error}", is_bad=True),))
    return lines


def sorted_states(states: Mapping[int, NodeState], order: str) -> Sequence[NodeState]:
    """The nodes in the order of a key of `ORDERS`; by slot where that is the same."""
    key = ORDERS[order].key
    return sorted(states.values(), key=lambda state: (key(state), state.slot))


def text_of(line: Line) -> str:
    """The line without colours."""
    return "".join(cell.text for cell in line).rstrip()


def mean_use(samples: Sequence[Sample]) -> float | None:
    """The mean utilisation of all GPUs in these samples."""
    uses = [gpu.utilization_percent for sample in samples for gpu in sample.gpus if gpu.utilization_percent is not None]
    return fmean(uses) if uses else None


def per_second(count: float) -> str:
    """`12.3 GB/s`, in powers of 1000 as networks are."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}/s" if unit == "B" else f"{count:.1f} {unit}/s"
        count /= 1000
    return f"{count:.1f} GB/s"


def _shortened(name: str, width: int) -> str:
    """The name without its beginning where it is too long: its end is what tells nodes apart."""
    return name if len(name) <= width else f"…{name[len(name) - width + 1 :]}"


def _gpu_cell(gpu: GpuSample | None) -> Cell:
    if gpu is None or gpu.utilization_percent is None:
        return Cell(text=f"{NONE:>{GPU_WIDTH}}")
    return Cell(
        text=f"{gpu.utilization_percent:>{GPU_WIDTH}.0f}", heat=gpu.utilization_percent / 100, is_bad=gpu.is_slowed
    )


def _of_the_machine(sample: Sample) -> dict[str, str]:
    """Column → text, for nodes without GPUs."""
    used = sample.memory_total_gib - sample.memory_available_gib
    return {"load": f"{sample.load:.1f}", "memory": f"{used:.0f}/{sample.memory_total_gib:.0f} GiB"}


def _of_gpus(sample: Sample) -> dict[str, str]:
    """Column → text: means and sums of all GPUs, and the hottest one's temperature."""
    use = mean_use([sample])
    used_gib = sum(gpu.memory_used_mib or 0 for gpu in sample.gpus) / MIB_PER_GIB
    total_gib = sum(gpu.memory_total_mib or 0 for gpu in sample.gpus) / MIB_PER_GIB
    power_w = sum(gpu.power_w or 0 for gpu in sample.gpus)
    hottest = max((gpu.temperature_c for gpu in sample.gpus if gpu.temperature_c is not None), default=None)
    return {
        "util": NONE if use is None else f"{use:.0f} %",
        "memory": f"{used_gib:.0f}/{total_gib:.0f} G",
        "power": f"{power_w:.0f} W",
        "temp": NONE if hottest is None else f"{hottest:.0f} °C",
    }


def _network(state: NodeState) -> dict[str, str]:
    rates = state.rates
    if rates is None:
        return {"in": NONE, "out": NONE}
    return {"in": per_second(rates.received_per_s), "out": per_second(rates.sent_per_s)}


def _gpu_line(gpu: GpuSample) -> Line:
    use = gpu.utilization_percent
    return (
        Cell(text=f"{gpu.index:>4}"),
        Cell(text=f"{NONE if use is None else f'{use:.0f} %':>7}", heat=None if use is None else use / 100),
        Cell(text=f"{_of_most(gpu.memory_used_mib, gpu.memory_total_mib, 'MiB'):>18}"),
        Cell(text=f"{_of_most(gpu.power_w, gpu.power_limit_w, 'W'):>12}"),
        Cell(text=f"{NONE if gpu.temperature_c is None else f'{gpu.temperature_c:.0f} °C':>8}"),
        Cell(text=f"{NONE if gpu.sm_mhz is None else f'{gpu.sm_mhz:.0f} MHz':>10}", is_bad=gpu.is_slowed),
    )


def _of_most(value: float | None, most: float | None, unit: str) -> str:
    return NONE if value is None or most is None else f"{value:.0f}/{most:.0f} {unit}"


def _gpus(state: NodeState) -> tuple[GpuSample, ...]:
    return () if state.sample is None else state.sample.gpus


def _most_network(state: NodeState) -> float:
    return 0.0 if state.rates is None else -(state.rates.received_per_s + state.rates.sent_per_s)


ORDERS = {
    "n": Order(word="node", key=lambda state: 0.0),
    "u": Order(word="utilisation", key=lambda state: -sum(gpu.utilization_percent or 0 for gpu in _gpus(state))),
    "m": Order(word="memory", key=lambda state: -sum(gpu.memory_used_mib or 0 for gpu in _gpus(state))),
    "p": Order(word="power", key=lambda state: -sum(gpu.power_w or 0 for gpu in _gpus(state))),
    "t": Order(word="temperature", key=lambda state: -max((g.temperature_c or 0 for g in _gpus(state)), default=0)),
    "w": Order(word="network", key=_most_network),
}


def title(
    inventory: Inventory, states: Mapping[int, NodeState], ledger: Ledger | None, *, now: datetime, now_s: float
) -> str:
    """`train · 4 × p5.48xlarge · 32 × H100 80GB · 4/4 heard · util 97 % · about $265.85 · ends 17:22 UTC (…)`."""
    heard = [state for state in states.values() if silence(state, now_s) is None]
    use = mean_use([state.sample for state in heard if state.sample is not None])
    parts = [
        inventory.name,
        hardware(inventory),
        f"{len(heard)}/{len(states)} heard",
        *([] if use is None else [f"util {use:.0f} %"]),
        money(inventory, spent_usd(inventory, ledger, alive=None, now=now)),
        ends(inventory, now),
    ]
    return " · ".join(parts) + rehearsed(inventory.rehearsal, inventory.gpus_per_node > 0)
