"""What comes to a node with its membership: verbs that nobody needs before, and the watch over the node's end."""

import contextlib
import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any, List, Optional, Tuple

from clusterctl_bootstrap.node import guard
from clusterctl_bootstrap.node.apply import apply, write_ssh_names
from clusterctl_bootstrap.node.ending import idle_limit_s
from clusterctl_bootstrap.node.facts import FactsError, present
from clusterctl_bootstrap.node.files import locked, write_atomically
from clusterctl_bootstrap.node.outside import Outside

BARRIER = re.compile(r"barrier ([\w.][\w.-]{0,63})(?: --timeout (\d{1,6})([smh]))?\Z", re.ASCII)
SECONDS = {"s": 1, "m": 60, "h": 3600}
# With KillMode=process, a hook that the watch has started goes on when a push restarts the watch.
UNIT = """\
[Unit]
Description=clusterctl: %s
StartLimitIntervalSec=0
[Service]
ExecStart=/usr/local/bin/clusterctl-node %s
Restart=always
RestartSec=2
KillMode=process
OOMScoreAdjust=-900
SyslogIdentifier=clusterctl
"""
# Without systemd: the previous watch, known by its process id, is ended first.
DETACHED = (
    'read -r old <"$1" && grep -qz "^$2$" "/proc/$old/cmdline" && kill "$old"; '
    'setsid "$0" "$2" >/dev/null 2>&1 </dev/null &'
)


def run(arguments: List[str], root: Path, outside: Outside) -> Optional[int]:
    """The exit code of a verb that came later; None when there is no such verb."""
    if {"-h", "--help"}.intersection(arguments):
        print(_loaded("usage").help_on(arguments[0]))
        return 0
    if arguments == ["apply"]:
        return _take_membership(root, outside)
    asked = asked_barrier(" ".join(arguments))
    if asked:
        return int(_loaded("barrier").barrier(root, *asked))
    if len(arguments) > 1 and arguments[0] == "barrier" and not BARRIER.match("barrier " + arguments[1]):
        reason = "no name for a barrier: letters, digits, . _ and -, at most 64, the first one no -"
        print("clusterctl-node: %r is %s" % (arguments[1], reason), file=sys.stderr)
    if arguments[:1] == ["idle-report"] and len(arguments) > 3:
        every_s, address, port = arguments[1:4]
        return int(_loaded("idle_node").report(root, float(every_s), (address, int(port)), outside))
    if arguments == ["idle"]:
        return int(_loaded("idle_cluster").keep_watch(root, outside))
    return int(_loaded("watch").watch(root, outside)) if arguments == ["watch"] else None


def _loaded(module: str) -> Any:
    """A module of the agent that one verb alone needs."""
    return importlib.import_module("clusterctl_bootstrap.node." + module)


def _take_membership(root: Path, outside: Outside) -> int:
    answer = apply(root, sys.stdin.read(), outside)
    print(json.dumps(answer))
    if answer["ok"]:
        _start_watches(root, outside)
    return 0 if answer["ok"] else 1


def asked_barrier(words: str) -> Optional[Tuple[str, int]]:
    """The barrier's name and the seconds to wait at most; None where these words ask for none."""
    found = BARRIER.match(words)
    return found and (found.group(1), int(found.group(2) or 10) * SECONDS[found.group(3) or "m"])


def attend(root: Path, outside: Outside) -> None:
    """What a boot does besides its phases: starts the watches, and has ssh go by the same ranks as /etc/hosts.

    The last push may have been cut off before it wrote ssh's settings, and an image may have those of another cluster.
    """
    _start_watches(root, outside)
    with locked(root):
        write_ssh_names(root, present(root))


def _start_watches(root: Path, outside: Outside) -> None:
    """Restarts what a node runs for as long as it lives, with the newest code and membership.

    On a host it starts nothing: a host has no deadline to warn of, and nobody but its owner ends it.
    """
    with contextlib.suppress(FactsError):  # the next boot says what is wrong with the birth certificate
        if guard.is_host(root):
            return
    _start("watch", "warns before the end of this machine", root, outside)
    if idle_limit_s(root):
        _start("idle", "ends the cluster when nobody uses it", root, outside)


def _start(verb: str, what: str, root: Path, outside: Outside) -> None:
    if not guard.applies(root):
        place = root / "run/clusterctl" / (verb + ".pid")
        outside.run(["sh", "-c", DETACHED, "/usr/local/bin/clusterctl-node", str(place), verb])
        return
    name, text = "clusterctl-%s.service" % verb, UNIT % (what, verb)
    unit = root / "run/systemd/system" / name
    with contextlib.suppress(OSError):  # a membership is taken, whether there is a watch or not
        if not unit.exists() or unit.read_text() != text:
            write_atomically(unit, text)
            outside.run(["systemctl", "daemon-reload"])
    outside.run(["systemctl", "restart", "--no-block", name])
