"""The mount helper of a rehearsal's machine. SIMULATED: a folder of the rehearsing computer stands for a file server.

A simulated package makes it /sbin/mount.lustre, /sbin/mount.nfs or /sbin/mount.nfs4, which mount(8) calls with a
source, a folder and `-o` options. It mounts through FUSE, not by a bare bind, so that the kernel shows the type
`fuse.simulated-lustre` and a source that ends in the one asked for. Standard library only, run by the machine's
own Python.
"""

import os
import subprocess
import sys
from pathlib import Path

SHARES = Path("/run/clusterctl-rehearsal/shares")
PLACES = Path("/run/clusterctl-rehearsal/simulated")
TIMEOUT_S = 20
MOUNT_FAILED = 32
"""mount(8), exit status."""


def main(kind: str, source: str, folder: str, options: str) -> int:
    """Mounts the share that `source` names. Without one, prints what mount does for an unknown host; returns 32."""
    server = source.partition("@")[0].partition(":")[0]
    share = SHARES / server.partition(".")[0]
    if not share.is_dir():
        print(f"mount.{kind}: Failed to resolve server {server}: Name or service not known (simulated)")
        return MOUNT_FAILED
    place = PLACES / source.strip("/")
    if not os.path.ismount(str(place)):
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "--bind", str(share), str(place)], check=True, timeout=TIMEOUT_S)
    words = ["subtype=simulated-" + kind, *(["ro"] if "ro" in options.split(",") else [])]
    # What another machine writes is seen at once, and a lock taken there holds here.
    flags = ["--multithreaded", "--enable-lock-forwarding", "-o", "attr_timeout=0,entry_timeout=0,negative_timeout=0"]
    done = subprocess.run(["bindfs", *flags, "-o", ",".join(words), str(place), folder], timeout=TIMEOUT_S, check=False)
    if done.returncode == 0:
        print(f"SIMULATED: {folder} is a folder of the rehearsing computer, not {source}")
    return MOUNT_FAILED if done.returncode else 0


if __name__ == "__main__":
    given = sys.argv[1:]
    after = given[given.index("-o") + 1] if "-o" in given else ""
    sys.exit(main(Path(sys.argv[0]).name.partition(".")[2], given[0], given[1], after))
