"""The instance-store disks of this machine, as one volume."""

import json
from typing import Any, Dict, List, Optional, Tuple

from clusterctl_bootstrap.node.outside import Outside
from clusterctl_bootstrap.node.phase import PhaseFailed

MODEL = "Amazon EC2 NVMe Instance Storage"
FORMAT_TIMEOUT_S = 300
# lsblk repeats what udev told it, which may be nothing yet, and neither mdadm nor mkfs asks before it overwrites: the
# disks themselves are read first. AWS has trimmed them (EC2 User Guide, "Instance store volume TRIM support"; 2026-11).
FORMAT = (
    'udevadm settle; for a; do b=0; blkid -p "$a" || b=$?; [ $b = 2 ] || { echo "$a is not empty"; exit 9; }; done; '
    'a=/dev/md/clusterctl; [ $# = 1 ] || { mdadm --create $a --run --level=0 --raid-devices=$# "$@"; set $a; }; '
    'mkfs.ext4 -qE nodiscard "$1"; udevadm trigger -w "$1"'
)
Volume = Tuple[str, str, str]


def volume(outside: Outside, level: str) -> Volume:
    """Device, type and options for mount(8). Raises PhaseFailed.

    The disks are known by their model, which some versions of udev write with underscores, since the kernel's numbers
    change from boot to boot. What is on them stays: the deep learning images stripe and mount them by a service, which
    is waited for, and after a reboot the volume is there already.
    """
    outside.run(["systemctl", "start", "dlami-nvme.service"], FORMAT_TIMEOUT_S)
    rows = outside.run(["lsblk", "-dnpo", "NAME,MODEL"])[1].splitlines()
    disks = sorted(row.split()[0] for row in rows if MODEL in row.replace("_", " "))
    if not disks:
        raise PhaseFailed("nvme: no disk of the model %s: lsblk -o NAME,MODEL" % MODEL)
    if level == "single":
        disks = disks[:1]
    for _ in range(2):
        found = choice(json.loads(outside.run(["lsblk", "-Jlpo", "NAME,FSTYPE,MOUNTPOINT", *disks])[1])["blockdevices"])
        if found:
            return found
        code, output = outside.run(["sh", "-ec", FORMAT, "sh", *disks], FORMAT_TIMEOUT_S)
    raise PhaseFailed("nvme: exit %d: %s" % (code, output[-300:]))


def choice(rows: List[Dict[str, Any]]) -> Optional[Volume]:
    """The device to mount, of the disks and the volumes made of them; None if the disks are empty. Raises
    PhaseFailed.
    """
    used = [row for row in rows if row["mountpoint"] or row["fstype"]]
    for row in used:
        if row["mountpoint"]:
            return row["mountpoint"], "none", "bind"
    for row in used:
        if not row["fstype"].endswith("_member"):
            return row["name"], row["fstype"], "noatime"
    if used:
        raise PhaseFailed("nvme: %s is a %s that is part of nothing" % (used[0]["name"], used[0]["fstype"]))
    return None
