"""From machine to node: the phases of a boot, each recorded, the last one `ready`."""

import os
import shutil
import socket
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

from clusterctl_bootstrap.node import facts as facts_file
from clusterctl_bootstrap.node.status import Status, now
from clusterctl_bootstrap.node.writing import write_contract

LOGIN_TIMEOUT_S = 120.0
LOG_LINES = 15
RULE_MARK = Path("/run/clusterctl/imds")


class PhaseFailed(Exception):
    """A phase that cannot be passed; the text is for a person."""


def boot(root: Path) -> int:
    """Runs all phases; 0 when the node is ready, 1 when a phase failed (status.json says which and why)."""
    status = Status(root, _boot_id())
    log = root / "var/log/clusterctl.log"
    phases: List[Tuple[str, Callable[[Path, Path], Dict[str, Any]]]] = [
        ("identity", _identity),
        ("environment", _environment),
        ("metadata", _metadata),
        ("login", _login),
    ]
    known: Dict[str, Any] = {}
    for phase, step in phases:
        status.enter(phase, known or None)
        try:
            known = step(root, log)
        except (PhaseFailed, facts_file.FactsError, OSError, KeyError, ValueError) as e:
            message = (
                str(e) if isinstance(e, (PhaseFailed, facts_file.FactsError)) else "%s: %s" % (type(e).__name__, e)
            )
            _say(log, "%s failed: %s" % (phase, message))
            status.fail(phase, message, log.read_text().splitlines()[-LOG_LINES:])
            return 1
    status.enter("ready", known)
    _say(log, "ready, generation %s" % known["generation"])
    return 0


def _identity(root: Path, log: Path) -> Dict[str, Any]:
    known = facts_file.present(root)
    _say(log, "slot %s of %s, generation %s" % (known["slot"], known["cluster"], known["generation"]))
    simulated = root / "var/lib/clusterctl/simulated-failure"
    if simulated.exists():
        raise PhaseFailed("%s (simulated: a fault of the rehearsal)" % simulated.read_text().strip())
    return known


def _environment(root: Path, log: Path) -> Dict[str, Any]:
    known = facts_file.present(root)
    for remark in write_contract(root, known):
        _say(log, remark)
    return known


def _metadata(root: Path, log: Path) -> Dict[str, Any]:
    """User-data holds this node's host key, so only root may read the metadata service (the boothook set the rule)."""
    known = facts_file.present(root)
    if known.get("imds", "root") == "root" and os.getuid() == 0 and Path("/run/clusterctl/arm").exists():
        if shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
            raise PhaseFailed("nft is missing, so users could read this node's host key: install nftables in the image")
        if not RULE_MARK.exists():
            raise PhaseFailed("the rule that lets only root reach the metadata service was refused: nft list ruleset")
    return known


def _login(root: Path, log: Path) -> Dict[str, Any]:
    """Waits until a person could log in: sshd answers and nobody is kept out by /run/nologin."""
    until = time.monotonic() + LOGIN_TIMEOUT_S
    seen = "nothing"
    while time.monotonic() < until:
        seen = "/run/nologin" if Path("/run/nologin").exists() else _banner()
        if seen.startswith("SSH-"):
            return facts_file.present(root)
        time.sleep(0.05)
    raise PhaseFailed("no login after %.0f s: %s: systemctl status ssh" % (LOGIN_TIMEOUT_S, seen))


def _banner() -> str:
    try:
        with socket.create_connection(("127.0.0.1", 22), timeout=2) as connection:
            return connection.recv(64).decode("ascii", "replace")
    except OSError as e:
        return "port 22: %s" % e


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _say(log: Path, text: str) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        file.write("%s %s\n" % (now(), text))


def epoch(deadline: str) -> int:
    """Seconds since 1970 of an ISO time in UTC ending in Z."""
    return int(datetime.strptime(deadline, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp())
