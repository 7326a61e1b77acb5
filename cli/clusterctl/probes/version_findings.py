"""Versions that differ between the nodes of one cluster. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.probes.finding import Finding, Level
from clusterctl.probes.readings import Readings

VersionOf = Callable[[Readings], str | None]
"""Gives the version from a node's readings; None if they do not have it."""


@dataclass(frozen=True, kw_only=True)
class Versioned:
    """A version that should be the same on all nodes."""

    name: str
    of: VersionOf
    level: Level


def _installed(field: str) -> VersionOf:
    return lambda readings: None if readings.versions is None else getattr(readings.versions, field)


VERSIONED = (
    Versioned(name="driver", of=lambda r: None if r.gpu is None else r.gpu.driver_version, level="fault"),
    Versioned(name="NCCL", of=_installed("nccl"), level="fault"),
    Versioned(name="CUDA", of=_installed("cuda"), level="remark"),
    Versioned(name="EFA installer", of=_installed("efa_installer"), level="fault"),
    Versioned(name="kernel", of=_installed("kernel"), level="remark"),
)


def usual_versions(readings: Sequence[Readings]) -> Mapping[str, str]:
    """Name → what most nodes have; what no node reports is left out."""
    usual = {}
    for versioned in VERSIONED:
        counted = Counter(version for each in readings if (version := versioned.of(each)) is not None)
        if counted:
            usual[versioned.name] = counted.most_common(1)[0][0]
    return usual


def version_findings(readings: Readings, usual: Mapping[str, str]) -> list[Finding]:
    """Versions in which this node differs from most, and a driver that was upgraded but not loaded."""
    found = []
    for versioned in VERSIONED:
        own, others = versioned.of(readings), usual.get(versioned.name)
        if own is not None and others is not None and own != others:
            detail = f"{own}; most nodes have {others}"
            found.append(Finding(level=versioned.level, kind=f"another {versioned.name}", detail=detail))
    loaded = None if readings.versions is None else readings.versions.module
    library = None if readings.gpu is None else readings.gpu.driver_version
    if loaded is not None and library is not None and loaded != library:
        detail = f"loaded {loaded}, installed {library}"
        found.append(Finding(level="fault", kind="the driver was upgraded but not loaded", detail=detail))
    return found
