"""What a test run has left behind on this machine: namespaces, cgroups, mounts, processes.

`leftovers.py before FILE` notes what there is; `leftovers.py after FILE` prints what is new and exits 1 if anything is.
Processes are known by $CLUSTERCTL_TEST_RUN, which they inherit from scripts/test.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

SETTLE_S = 10.0
RUN_VARIABLE = "CLUSTERCTL_TEST_RUN"


def main(argv: list[str]) -> int:
    moment, note = argv[1], Path(argv[2])
    if moment == "before":
        note.write_text(json.dumps(sorted(present())))
        return 0
    before = set(json.loads(note.read_text()))
    deadline = time.monotonic() + SETTLE_S
    while (left := present() - before) and time.monotonic() < deadline:
        time.sleep(0.5)
    for thing in sorted(left):
        print(f"left behind: {thing}")
    return 1 if left else 0


def present() -> set[str]:
    return namespaces() | cgroups() | mounts() | processes()


def namespaces() -> set[str]:
    return {f"network namespace {path.name}" for path in Path("/run/netns").glob("ccl-*")}


def cgroups() -> set[str]:
    roots = [Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*")]
    folders = [folder for root in roots for folder in root.glob("clusterctl/*") if folder.is_dir()]
    return {f"cgroup {folder}" for folder in folders}


def mounts() -> set[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return {f"mount {line.split()[4]}" for line in lines if "clusterctl" in line.split()[4]}


def processes() -> set[str]:
    """The processes that this run of scripts/test has started, except this one and its parent."""
    marker = f"{RUN_VARIABLE}={os.environ.get(RUN_VARIABLE, '')}".encode()
    ours = {os.getpid(), os.getppid()}
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:  # it has ended meanwhile, or is another user's
            continue
        if marker in variables and int(folder.name) not in ours and command:
            found.add(f"process {folder.name}: {command[:120]}")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv))
