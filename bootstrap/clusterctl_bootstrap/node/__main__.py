"""clusterctl-node: what a node does for itself. Standard library only, Python 3.9 or newer."""

import json
import os
import sys
from pathlib import Path
from typing import Any, List

from clusterctl_bootstrap.node import facts, status
from clusterctl_bootstrap.node.boot import boot
from clusterctl_bootstrap.node.outside import Outside, ThisMachine

USAGE = (
    "usage: clusterctl-node boot | status [--follow] | apply < cluster.json | barrier NAME [--timeout 10m] | version"
)


def main(arguments: List[str], root: Path, outside: Outside) -> int:
    """Runs one verb. Returns its exit code: 0 done, 1 failed, 2 wrong usage, 3 not possible here or not yet."""
    if arguments == ["boot"]:
        _attend(root, outside)
        return boot(root, outside)
    if arguments == ["status"]:
        print(status.line(root))
        return 0
    if arguments == ["status", "--follow"]:
        status.follow(root)
        return 0
    if arguments == ["version"]:
        print(json.dumps({"agent": facts.birth(root).get("agent"), "python": sys.version.split()[0]}))
        return 0
    later = _later()
    if arguments[:1] in (["barrier"], ["apply"]) and not later:
        print("clusterctl-node: %s comes with the membership: clusterctl up" % arguments[0], file=sys.stderr)
        return 3
    code = later.run(arguments, root, outside) if later else None
    if code is None:
        print(USAGE, file=sys.stderr)
    return 2 if code is None else int(code)


def _attend(root: Path, outside: Outside) -> None:
    """Starts what came with the membership; a fault in it must not keep the machine from becoming a node."""
    try:
        later = _later()
        if later:
            later.attend(root, outside)
    except Exception as e:  # noqa: BLE001  # SyntaxError, too: the disk may have lost a part of it
        print("clusterctl-node: what came with the membership: %r" % e, file=sys.stderr)


def _later() -> Any:
    """The module that comes with the membership; None before."""
    try:
        from clusterctl_bootstrap.node import later  # noqa: PLC0415
    except ImportError:
        return None
    return later


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:], Path(os.environ.get("CLUSTERCTL_NODE_ROOT", "/")), ThisMachine()))
    except (facts.FactsError, PermissionError) as e:
        sys.exit("clusterctl-node: %s" % e)
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(1)
