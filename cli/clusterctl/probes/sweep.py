"""A sweep: every node asked, judged, shown; once, or again and again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn  # Any: probes of any reading

from clusterctl_infra.errors import SomeNodesFailed
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.output import Output
from clusterctl.probes.ask import ask_nodes
from clusterctl.probes.probe import Probe
from clusterctl.probes.report import SweepReport, judged
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.reached import look_at
from clusterctl.views.sweep import summary, sweep_text
from clusterctl.views.sweep_json import sweep_json


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What is asked of whom."""

    inventory: Inventory
    nodes: tuple[InventoryNode, ...]
    probes: tuple[Probe[Any], ...]
    is_chosen: bool
    """The person named the probes."""
    keys: LoginKeys
    connect_timeout_s: float
    timeout_s: float


def sweep_once(sweep: Sweep, output: Output, *, as_json: bool) -> int:
    """0 when all is well, 4 when a node has a fault or was not reached."""
    report = _report(sweep)
    if as_json:
        output.json(sweep_json(report))
    else:
        output.data(_text(sweep, report))
    if (told := summary(report)) is not None:
        output.note(told)
    next_line = look_at((node.answer.failure for node in report.nodes), sweep.inventory)
    if next_line is not None and not as_json:
        output.note(next_line)
    return SomeNodesFailed.exit_code if report.wrong else 0


def sweep_on(sweep: Sweep, output: Output, *, every_s: float, as_json: bool) -> NoReturn:
    """Sweeps until Ctrl-C; as JSON one line each time."""
    while True:
        began = time.monotonic()
        report = _report(sweep)
        if as_json:
            output.json(sweep_json(report), is_line=True)
        else:
            output.data(f"{datetime.now(UTC):%H:%M:%S} UTC  {_text(sweep, report)}\n")
        time.sleep(max(0.0, every_s - (time.monotonic() - began)))


def _report(sweep: Sweep) -> SweepReport:
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
