"""Simulated apt-get, curl and gpg for machines, which reach no package source."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from clusterctl_infra.catalog.mount_clients import MountClients

from clusterctl_rehearsal.machines.driver import MachineFile

FOLDER = "/usr/local/bin"
CLIENTS_FOLDER = "/usr/local/lib/clusterctl-rehearsal"
"""Holds the stand-ins for mount clients, and the list of packages that no source has."""


def package_files(clients: MountClients, missing: Sequence[str] = ()) -> dict[str, MachineFile]:
    """Programs that a node finds before the real ones; `missing`: packages that no source has."""
    fingerprint = next((row.fingerprint for row in clients.clients.values() if row.fingerprint), "")
    found = {
        f"{FOLDER}/apt-get": _program("apt_get.sh"),
        f"{FOLDER}/curl": _program("curl.sh"),
        f"{FOLDER}/gpg": _program("gpg.sh", fingerprint),
    }
    if missing:
        names = "".join(f"{name}\n" for name in missing)
        found[f"{CLIENTS_FOLDER}/missing-packages"] = MachineFile(content=names.encode())
    return found


def _program(name: str, fingerprint: str = "") -> MachineFile:
    text = files("clusterctl_rehearsal.packages").joinpath(name).read_text(encoding="utf-8")
    return MachineFile(content=text.replace("@FINGERPRINT@", fingerprint).encode(), mode=0o755)
