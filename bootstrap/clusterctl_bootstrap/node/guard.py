"""The deadline's timers and the metadata rule, as the boothook's guard script makes them."""

from pathlib import Path

from clusterctl_bootstrap.node.facts import birth
from clusterctl_bootstrap.node.outside import Outside

TIMERS = ("clusterctl-deadline.timer", "clusterctl-deadline-clock.timer")


class GuardFailed(Exception):
    """A guard is not in place; the text says which and why."""


def applies(root: Path) -> bool:
    """Whether systemd runs this machine: a process machine has its own end and no metadata service."""
    return (root / "run/systemd/system").is_dir()


def is_host(root: Path) -> bool:
    """Whether this machine is somebody else's: nothing of ours ends it."""
    return bool(birth(root).get("is_host"))


def check(root: Path, outside: Outside) -> None:
    """Checks that both guards are in place, and puts them up if the boothook did not. Raises GuardFailed."""
    if not applies(root) or is_host(root):
        return
    if not (_is_armed(outside) and _rule(root)):
        arm(root, outside)
    if _rule(root) not in ("root", "users"):
        raise GuardFailed("metadata service for root only: %s" % (_rule(root) or "no rule was made"))


def arm(root: Path, outside: Outside) -> None:
    """Runs the guard script: timers for the deadline that holds now. Raises GuardFailed."""
    for place in ("run/clusterctl/guard", "var/lib/clusterctl/guard"):
        if (root / place).exists():
            code, output = outside.run(["/bin/sh", str(root / place)])
            if code != 0 or not _is_armed(outside):
                raise GuardFailed("the deadline was not armed (exit %d): %s" % (code, output[-300:]))
            return
    raise GuardFailed("the deadline was not armed: there is no /run/clusterctl/guard, the boothook has not run")


def _is_armed(outside: Outside) -> bool:
    return any(outside.run(["systemctl", "is-active", "--quiet", timer])[0] == 0 for timer in TIMERS)


def _rule(root: Path) -> str:
    try:
        return (root / "run/clusterctl/imds").read_text().strip()
    except OSError:
        return ""
