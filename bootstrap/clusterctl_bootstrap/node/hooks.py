"""Packages and scripts of cluster.yaml: run as root, each with a log of its own; if one fails, its phase fails."""

import hashlib
from pathlib import Path
from typing import Any, Dict, List

from clusterctl_bootstrap.node import facts as facts_file
from clusterctl_bootstrap.node import guard
from clusterctl_bootstrap.node.files import log, write_atomically
from clusterctl_bootstrap.node.outside import Outside
from clusterctl_bootstrap.node.phase import PhaseFailed, wait

TIMEOUT_S = 1800
FOLDER = "var/lib/clusterctl/scripts"
LOG_LINES = 8
RUN = 'mkdir -p "${0%/*}"; exec >>"$0" 2>&1; set -a; HOME=/root; . /etc/clusterctl/env; exec timeout -k 9 "$@"'
# An index out of reach matters only if a package is not there yet. After a reset while dpkg worked, no package can be
# installed before dpkg has finished its work.
INSTALL = (
    'export DEBIAN_FRONTEND=noninteractive; a="apt-get -qyo DPkg::Lock::Timeout=${LOCK_S:-300}"; '
    "command -v apt-get || a=; "
    "for pause in 3 12 0; do ${a:+dpkg --configure -a}; ${a:-dnf -qy} ${a:+update}; "
    '${a:-dnf -qy} install "$@" && exit; sleep $pause; done; exit 1'
)


def packages(root: Path, outside: Outside) -> None:
    """Installs the packages of cluster.yaml, once. Raises PhaseFailed."""
    names = facts_file.present(root).get("packages")
    if names:
        _run(root, outside, "packages", ["sh", "-c", INSTALL, "sh", *names], True)


def longest_s(known: Dict[str, Any]) -> int:
    """Seconds that packages and scripts before the mounts, and the wait for scripts, may take at most, on any node."""
    rows = known.get("scripts") or []
    early = [row for row in rows if row[2] == "before-mounts"]
    return TIMEOUT_S * (len(early) + bool(known.get("packages")) + any(row[3:] for row in rows))


def missing_script(root: Path) -> str:
    """The first script that user-data has no room for and that is not here whole; empty when all are."""
    for name, _, _, *digest in facts_file.present(root).get("scripts") or []:
        path = root / FOLDER / name
        content = path.read_bytes() if digest and path.exists() else b""
        if digest and hashlib.sha256(content).hexdigest()[:32] != digest[0] and guard.applies(root):
            return str(name)
    return ""


def wait_for_scripts(root: Path, outside: Outside) -> None:
    """Returns when all scripts are here; `clusterctl up` sends those that do not fit into user-data. Raises
    PhaseFailed.
    """

    def hindrance() -> str:
        name = missing_script(root)
        return name and "%s has not come: clusterctl up" % name

    wait(outside, TIMEOUT_S, hindrance, 0.2)


def scripts(root: Path, outside: Outside, at: str) -> None:
    """Runs the scripts of that moment, in the order of cluster.yaml. Raises PhaseFailed."""
    for name, when, moment, *_ in facts_file.present(root).get("scripts") or []:
        if moment == at:
            argv = ["env", "CLUSTERCTL_INSTALL=" + INSTALL, str(root / FOLDER / name)]
            _run(root, outside, name, argv, when == "once")


def _run(root: Path, outside: Outside, name: str, argv: List[str], is_once: bool) -> None:
    done = root / "var/lib/clusterctl/done" / name
    if not guard.applies(root) or (is_once and done.exists()):
        return
    place = root / "var/log/clusterctl" / (name + ".log")
    began = outside.monotonic()
    code, output = outside.run(["sh", "-c", RUN, str(place), str(TIMEOUT_S), *argv], TIMEOUT_S + 30)
    ended = "%s: exit %d after %d s" % (name, code, outside.monotonic() - began)
    if code:
        lines = (place.read_text(errors="replace") if place.exists() else output).splitlines()[-LOG_LINES:]
        for line in lines:
            log(root, "%s: %s" % (name, line))
        raise PhaseFailed("%s: %s" % (ended, "%s: %s" % (place, lines[-1]) if lines else "it said nothing"))
    log(root, ended)
    write_atomically(done, "")
