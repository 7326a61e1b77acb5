"""clusterctl-node: what a node does for itself. Standard library only, Python 3.9 or newer."""

import fcntl
import json
import os
import sys
from pathlib import Path

from clusterctl_bootstrap.node import status
from clusterctl_bootstrap.node.apply import apply
from clusterctl_bootstrap.node.boot import boot

USAGE = "usage: clusterctl-node boot | status [--follow] | apply < cluster.json"


def main(arguments: "list[str]", root: Path) -> int:
    """Runs one verb; 0 done, 1 failed, 2 wrong usage."""
    if arguments == ["status"]:
        print(status.line(root))
        return 0
    if arguments == ["status", "--follow"]:
        status.follow(root)
        return 0
    if arguments == ["boot"]:
        with locked(root):
            return boot(root)
    if arguments == ["apply"]:
        text = sys.stdin.read()
        with locked(root):
            answer = apply(root, text)
        print(json.dumps(answer))
        return 0 if answer["ok"] else 1
    print(USAGE, file=sys.stderr)
    return 2


def locked(root: Path):  # type: ignore[no-untyped-def]  # an open file: closing it unlocks
    """A file that only one `boot` or `apply` holds at a time."""
    folder = root / "var/lib/clusterctl"
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / "lock").open("w")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:], Path(os.environ.get("CLUSTERCTL_NODE_ROOT", "/"))))
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(1)
