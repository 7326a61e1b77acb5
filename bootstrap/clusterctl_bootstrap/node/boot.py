"""From machine to node: the phases of a boot, each recorded, the last one `ready`."""

from pathlib import Path
from typing import Callable, List, Tuple

from clusterctl_bootstrap.node import efa, guard, hooks, mounts, status, trust
from clusterctl_bootstrap.node import facts as facts_file
from clusterctl_bootstrap.node.environment import address
from clusterctl_bootstrap.node.files import locked, log
from clusterctl_bootstrap.node.outside import Outside
from clusterctl_bootstrap.node.phase import PhaseFailed, wait
from clusterctl_bootstrap.node.writing import write_environment, write_identity

ADDRESS_TIMEOUT_S = 60
LOGIN_TIMEOUT_S = 120
LOG_LINES = 15
Phase = Callable[[Path, Outside], None]


def boot(root: Path, outside: Outside) -> int:
    """Runs all phases; 0 when the node is ready, 1 when a phase failed (status.json says which and why)."""
    # Whatever else a node has to do on its way to `ready` becomes a phase of its own, here.
    phases: List[Tuple[str, Phase]] = [
        ("network", _network),
        ("identity", _identity),
        ("environment", _environment),
        ("fabric", efa.check),
        ("guard", guard.check),
        ("trust", trust.hand_over),
        ("login", _login),
        ("packages", hooks.packages),
        ("waiting for scripts from clusterctl up", hooks.wait_for_scripts),
        ("scripts before mounts", _scripts("before-mounts")),
        ("mount clients", _scripts("mount-clients")),
        ("mounts", mounts.mount_all),
        ("shared files", mounts.meet),
        ("scripts", _scripts("before-ready")),
    ]
    status.begin(root)
    for phase, step in phases:
        try:
            if step is hooks.wait_for_scripts and not hooks.missing_script(root):
                continue
            status.enter(root, phase)
            step(root, outside)
        except Exception as e:  # noqa: BLE001  # whatever it was, status.json has to say it
            return _failed(root, phase, e)
    status.enter(root, "ready")
    log(root, "ready")
    try:
        hooks.scripts(root, outside, "after-ready")
    except PhaseFailed as e:
        return _failed(root, "scripts after ready", e, "ready")  # whoever uses it already keeps it
    return 0


def _scripts(at: str) -> Phase:
    return lambda root, outside: hooks.scripts(root, outside, at)


def _network(root: Path, outside: Outside) -> None:
    """Waits until this machine has the slot's address; one that does not get it is another slot's machine."""
    known = facts_file.present(root)
    own = address(known["slot_cidr"], known["slot"])
    wait(outside, ADDRESS_TIMEOUT_S, lambda: "" if outside.has_address(own) else "no interface has %s: ip addr" % own)


def _identity(root: Path, outside: Outside) -> None:
    known = facts_file.present(root)
    log(root, "slot %s of %s, generation %s" % (known["slot"], known["cluster"], known["generation"]))
    simulated = root / "var/lib/clusterctl/simulated-failure"
    if simulated.exists():
        raise PhaseFailed("%s (simulated: a fault of the rehearsal)" % simulated.read_text().strip())
    with locked(root):
        write_identity(root, facts_file.present(root))


def _environment(root: Path, outside: Outside) -> None:
    with locked(root):
        left_out = write_environment(root, facts_file.present(root), outside)
    if left_out:
        log(root, "left out of env.list, as the value has a newline: %s" % ", ".join(left_out))


def _login(root: Path, outside: Outside) -> None:
    """Waits until a person could log in: sshd answers and nobody is kept out by /run/nologin."""
    known = facts_file.present(root)
    own, port = address(known["slot_cidr"], known["slot"]), known.get("ssh_port", 22)

    def hindrance() -> str:
        if (root / "run/nologin").exists():
            return "/run/nologin is there: systemctl list-jobs"
        banner = outside.ssh_banner(own, port)
        return "" if banner.startswith("SSH-") else "port %d: %s: systemctl status ssh" % (port, banner)

    wait(outside, LOGIN_TIMEOUT_S, hindrance)


def _failed(root: Path, phase: str, error: Exception, state: str = "failed") -> int:
    is_for_people = isinstance(error, (PhaseFailed, guard.GuardFailed, facts_file.FactsError))
    message = str(error) if is_for_people else "%s: %s" % (type(error).__name__, error)
    log(root, "%s failed: %s" % (phase, message))
    lines = (root / "var/log/clusterctl.log").read_text(encoding="utf-8", errors="replace").splitlines()
    status.enter(root, state, {"phase": phase, "message": message, "log": lines[-LOG_LINES:]})
    return 1
