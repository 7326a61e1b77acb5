"""What a machine gets so that the node's own units mount stand-ins: mount helpers, a disk, bound folders."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from clusterctl_infra.catalog.instance import InstanceType

from clusterctl_rehearsal.machines.driver import MachineFile
from clusterctl_rehearsal.packages.files import CLIENTS_FOLDER

SHARES_IN_MACHINES = "/run/clusterctl-rehearsal/shares"
FUSE = Path("/dev/fuse")
PYTHON = "#!/usr/bin/python3 -IS\n"
DISK_SERVICE = """\
[Unit]
Description=SIMULATED: a folder of this machine stands for its instance-store disks
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=mkdir -p /opt/dlami/nvme /var/lib/clusterctl-rehearsal/simulated-nvme
ExecStart=mount --bind /var/lib/clusterctl-rehearsal/simulated-nvme /opt/dlami/nvme
"""


def storage_files(kind: InstanceType) -> dict[str, MachineFile]:
    """The mount helpers, in a folder in which mount(8) does not look: simulated packages copy them from there.

    For a type with instance-store disks, also their stand-in.
    """
    share = MachineFile(content=_text("shares.py", interpreter=PYTHON), mode=0o755)
    bucket = MachineFile(content=_text("bucket_mount.py", interpreter=PYTHON), mode=0o755)
    helpers = {"mount.lustre": share, "mount.nfs": share, "mount.nfs4": share, "mount.mount-s3": bucket}
    found = {f"{CLIENTS_FOLDER}/{name}": program for name, program in helpers.items()}
    if kind.nvme_gb > 0:
        found["/usr/local/bin/lsblk"] = MachineFile(content=_text("disks.sh"), mode=0o755)
        found["/etc/systemd/system/dlami-nvme.service"] = MachineFile(content=DISK_SERVICE.encode())
    return found


def storage_binds(shares: Path) -> dict[str, str]:
    """Host path → place in a machine, writable: the folder with one share for each file system, and FUSE."""
    shares.mkdir(parents=True, exist_ok=True)
    return {str(shares): SHARES_IN_MACHINES, **({str(FUSE): str(FUSE)} if FUSE.exists() else {})}


def _text(name: str, *, interpreter: str = "") -> bytes:
    return interpreter.encode() + files("clusterctl_rehearsal.storage").joinpath(name).read_bytes()
