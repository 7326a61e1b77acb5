"""The script by which a node installs the programs that its mounts need."""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl_bootstrap.boothook import shell_text
from clusterctl_bootstrap.node_plan import ScriptPlan

NAME = "mount-clients"
"""The name of the script, of the moment at which it runs, and of its log on a node."""
LIMIT_S = 180
LOCK_S = 50
"""How long apt waits for its lock in each of the agent's three tries. With 15 s of pauses this is less than LIMIT_S, so
the last line of the log is apt's, which names the lock's holder."""


def mount_clients(parts: Iterable[str]) -> ScriptPlan:
    """The script with these parts; each installs one client."""
    head = shell_text("mount_clients.sh").replace("@LIMIT_S@", str(LIMIT_S)).replace("@LOCK_S@", str(LOCK_S))
    return ScriptPlan(name=NAME, content=head + "".join(parts), when="once", at=NAME)


def from_own_sources(helper: str, package: str) -> str:
    """The part that installs a package from the system's own sources, unless /sbin/mount.<helper> is there."""
    return _part("package", HELPER=helper, PACKAGE=package)


def lustre_of_ubuntu(suite: str) -> str:
    """The part that installs FSx's client for the running kernel from FSx's repository, unless the image has it."""
    return _part("lustre", SUITE=suite)


def signed_mountpoint(version: str, architecture: str, fingerprint: str) -> str:
    """The part that installs Mountpoint's package if this fingerprint's key signed it, unless the image has it."""
    return _part("mountpoint", VERSION=version, ARCHITECTURE=architecture, FINGERPRINT=fingerprint)


def _part(name: str, **values: str) -> str:
    text = shell_text(f"mount_client_{name}.sh")
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text
