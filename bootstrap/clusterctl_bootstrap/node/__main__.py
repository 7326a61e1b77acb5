"""clusterctl-node: what a node does for itself. Standard library only, Python 3.9 or newer."""

import json
import os
import re
import sys
from pathlib import Path
from typing import List

from clusterctl_bootstrap.node import facts, status
from clusterctl_bootstrap.node.apply import apply
from clusterctl_bootstrap.node.boot import boot
from clusterctl_bootstrap.node.outside import Outside

USAGE = (
    "usage: clusterctl-node boot | status [--follow] | apply < cluster.json | barrier NAME [--timeout 10m] | version"
)
BARRIER = re.compile(r"barrier ([\w.-]{1,64})(?: --timeout (\d{1,6})([smh]))?\Z", re.ASCII)
SECONDS = {"s": 1, "m": 60, "h": 3600}


def main(arguments: List[str], root: Path, outside: Outside) -> int:
    """Runs one verb; 0 done, 1 failed, 2 wrong usage."""
    if arguments == ["boot"]:
        return boot(root, outside)
    if arguments == ["status"]:
        print(status.line(root))
        return 0
    if arguments == ["status", "--follow"]:
        status.follow(root)
        return 0
    if arguments == ["apply"]:
        answer = apply(root, sys.stdin.read(), outside)
        print(json.dumps(answer))
        return 0 if answer["ok"] else 1
    waits = BARRIER.match(" ".join(arguments))
    if waits:
        try:
            from clusterctl_bootstrap.node.barrier import barrier  # noqa: PLC0415  # it comes with the membership
        except ImportError:
            print("clusterctl-node: the barrier comes with the membership: clusterctl up", file=sys.stderr)
            return 3
        return barrier(root, waits.group(1), int(waits.group(2) or 10) * SECONDS[waits.group(3) or "m"])
    if arguments == ["version"]:
        print(json.dumps({"agent": facts.birth(root).get("agent"), "python": sys.version.split()[0]}))
        return 0
    print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:], Path(os.environ.get("CLUSTERCTL_NODE_ROOT", "/")), Outside()))
    except (facts.FactsError, PermissionError) as e:
        sys.exit("clusterctl-node: %s" % e)
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(1)
