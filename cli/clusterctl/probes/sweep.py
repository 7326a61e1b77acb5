"""A sweep: every node asked, judged, shown; once, or again and again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn  # Any: probes of any reading

from clusterctl_infra.errors import SomeNodesFailed, UsageError
from clusterctl_infra.nearest import did_you_mean
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.output import Output
from clusterctl.probes.ask import ask_nodes
from clusterctl.probes.clock import CLOCK
from clusterctl.probes.disk import DISK
from clusterctl.probes.efa import EFA
from clusterctl.probes.gpu import GPU
from clusterctl.probes.infiniband import INFINIBAND
from clusterctl.probes.kernel_log import KERNEL
from clusterctl.probes.load import LOAD
from clusterctl.probes.nvlink import NVLINK
from clusterctl.probes.probe import Probe
from clusterctl.probes.report import SweepReport, judged
from clusterctl.probes.spot import SPOT
from clusterctl.probes.versions import VERSIONS
from clusterctl.probes.view import summary, sweep_json, sweep_text
from clusterctl.ssh.failure_hints import look_at
from clusterctl.ssh.keys.login_keys import LoginKeys


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The probes, the nodes that they run on, and how long they may take."""

    inventory: Inventory
    nodes: tuple[InventoryNode, ...]
    probes: tuple[Probe[Any], ...]
    is_chosen: bool
    """Whether the person named the probes."""
    keys: LoginKeys
    connect_timeout_s: float
    timeout_s: float


def sweep_once(sweep: Sweep, output: Output, *, as_json: bool) -> int:
    """The exit code: 0 when all is well, 4 when a node has a fault or was not reached."""
    report = swept(sweep)
    if as_json:
        output.json(sweep_json(report))
    else:
        output.data(_text(sweep, report))
    if (line := summary(report)) is not None:
        output.note(line)
    next_line = look_at((node.answer.failure for node in report.nodes), sweep.inventory)
    if next_line is not None and not as_json:
        output.note(next_line)
    return SomeNodesFailed.exit_code if report.wrong else 0


def sweep_on(sweep: Sweep, output: Output, *, every_s: float, as_json: bool) -> NoReturn:
    """Sweeps until Ctrl-C; as JSON one line each time."""
    while True:
        began = time.monotonic()
        report = swept(sweep)
        if as_json:
            output.json(sweep_json(report), is_line=True)
        else:
            output.data(f"{datetime.now(UTC):%H:%M:%S} UTC  {_text(sweep, report)}\n")
        time.sleep(max(0.0, every_s - (time.monotonic() - began)))


def swept(sweep: Sweep) -> SweepReport:
    """What all nodes answered, judged."""
    answers = ask_nodes(
        sweep.inventory,
        sweep.nodes,
        sweep.probes,
        keys=sweep.keys,
        connect_timeout_s=sweep.connect_timeout_s,
        timeout_s=sweep.timeout_s,
    )
    return judged(sweep.inventory, answers)


def _text(sweep: Sweep, report: SweepReport) -> str:
    return sweep_text(report, probes=[probe.name for probe in sweep.probes], is_chosen=sweep.is_chosen)


PROBES: dict[str, Probe[Any]] = {
    probe.name: probe for probe in (CLOCK, LOAD, SPOT, VERSIONS, EFA, INFINIBAND, KERNEL, DISK, GPU, NVLINK)
}


def chosen_probes(names: Sequence[str]) -> tuple[Probe[Any], ...]:
    """The probes with these names, or all if there are none, in the order of PROBES.

    Raises UsageError that names the nearest probe.
    """
    wanted = [word for name in names for word in name.split(",") if word]
    for word in wanted:
        if word not in PROBES:
            known = f"; there are {', '.join(PROBES)}"
            raise UsageError(f"no probe {word!r}{did_you_mean(word, PROBES) or known}", hint="clusterctl sweep --help")
    return tuple(probe for name, probe in PROBES.items() if not wanted or name in wanted)
