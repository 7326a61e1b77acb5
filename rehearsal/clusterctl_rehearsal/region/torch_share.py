"""torch in machines: the copy that scripts/torch made, bound read-only instead of installed in each machine."""

from __future__ import annotations

import re
from pathlib import Path

from clusterctl_rehearsal.machines.driver import MachineFile

IN_MACHINES = "/opt/torch"
_VERSION = re.compile(r"-cp(\d)(\d+)$")
"""scripts/torch names a copy by torch's version and Python's: 2.13.0-cp311."""


def torch_share(cache: Path) -> dict[str, str]:
    """Host folder → its place in machines; empty while there is no torch. Of several copies, the last by name."""
    copy = _newest(cache)
    return {} if copy is None else {str(copy): IN_MACHINES}


def torch_files(cache: Path) -> dict[str, MachineFile]:
    """The file by which the machines' Python finds that copy, after the packages installed in the machine.

    A path file (https://docs.python.org/3/library/site.html) instead of PYTHONPATH: it applies to every user and
    service, and to what sudo or cron starts.
    """
    copy = _newest(cache)
    version = None if copy is None else _VERSION.search(copy.name)
    if version is None:
        return {}
    packages = f"/usr/local/lib/python{version[1]}.{version[2]}/dist-packages"  # Debian's and Ubuntu's python3
    return {f"{packages}/clusterctl-torch.pth": MachineFile(content=f"{IN_MACHINES}\n".encode())}


def _newest(cache: Path) -> Path | None:
    copies = sorted(folder for folder in (cache / "torch").glob("*-cp*") if folder.is_dir())
    return copies[-1] if copies else None
