"""All probes, in the order in which a node answers them: those that can hang come last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any  # a probe's reading is whatever its parser gives

from clusterctl_infra.errors import UsageError
from clusterctl_infra.nearest import did_you_mean

from clusterctl.probes.clock import CLOCK
from clusterctl.probes.disk import DISK
from clusterctl.probes.efa import EFA
from clusterctl.probes.gpu import GPU
from clusterctl.probes.kernel_log import KERNEL
from clusterctl.probes.load import LOAD
from clusterctl.probes.nvlink import NVLINK
from clusterctl.probes.probe import Probe
from clusterctl.probes.spot import SPOT
from clusterctl.probes.versions import VERSIONS

PROBES: dict[str, Probe[Any]] = {
    probe.name: probe for probe in (CLOCK, LOAD, SPOT, VERSIONS, EFA, KERNEL, DISK, GPU, NVLINK)
}


def chosen_probes(names: Sequence[str]) -> tuple[Probe[Any], ...]:
    """The probes called so, all without names, in their own order. Raises UsageError naming the nearest one."""
    wanted = [word for name in names for word in name.split(",") if word]
    for word in wanted:
        if word not in PROBES:
            known = f"; there are {', '.join(PROBES)}"
            raise UsageError(f"no probe {word!r}{did_you_mean(word, PROBES) or known}", hint="clusterctl sweep --help")
    return tuple(probe for name, probe in PROBES.items() if not wanted or name in wanted)
