from __future__ import annotations

from clusterctl_infra.catalog.instance import InstanceType

from clusterctl_rehearsal.machines.driver import MachineFile


def machine_files(kind: InstanceType) -> dict[str, MachineFile]:
    return {}
