"""All that one node answered to its probes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any  # readings by name, each of its own type

from clusterctl_infra.outputs import InventoryNode

from clusterctl.probes.clock import ClockReading
from clusterctl.probes.disk import FileSystem
from clusterctl.probes.efa import EfaReading
from clusterctl.probes.gpu import GpuReading
from clusterctl.probes.infiniband import InfinibandReading
from clusterctl.probes.kernel_log import KernelReading
from clusterctl.probes.load import LoadReading
from clusterctl.probes.nvlink import Links
from clusterctl.probes.probe import ProbeTrouble
from clusterctl.probes.spot import SpotReading
from clusterctl.probes.versions import VersionsReading
from clusterctl.ssh.failures import NodeFailure


@dataclass(frozen=True, kw_only=True)
class Readings:
    """One field per probe, by its name; None: not asked, or no reading."""

    gpu: GpuReading | None = None
    nvlink: Mapping[int, Links] | None = None
    efa: EfaReading | None = None
    infiniband: InfinibandReading | None = None
    kernel: KernelReading | None = None
    disk: tuple[FileSystem, ...] | None = None
    load: LoadReading | None = None
    spot: SpotReading | None = None
    clock: ClockReading | None = None
    versions: VersionsReading | None = None
    troubles: Mapping[str, str] = field(default_factory=dict)
    """Probe → why it has no reading."""


@dataclass(frozen=True, kw_only=True)
class NodeAnswer:
    """A node, what it answered, and when: Unix time on this computer."""

    node: InventoryNode
    readings: Readings
    failure: NodeFailure | None
    asked_at_s: float
    answered_at_s: float


def readings_of(by_probe: Mapping[str, Any]) -> Readings:
    """The probes' results: each reading in the field of its probe's name, each ProbeTrouble in `troubles`."""
    known = {each.name for each in fields(Readings)}
    good = {name: value for name, value in by_probe.items() if not isinstance(value, ProbeTrouble) and name in known}
    return Readings(
        **good,
        troubles={name: value.message for name, value in by_probe.items() if isinstance(value, ProbeTrouble)},
    )
