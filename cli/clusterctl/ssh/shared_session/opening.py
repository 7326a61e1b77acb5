"""Opens the session that all private nodes share: to slot 0, or to another node where that one is silent.

python -P -m clusterctl.ssh.shared_session.opening HOME CLUSTER SILENT_INSTANCE ENDS_AT

Runs in the folder of the shared session. SILENT_INSTANCE, which may be empty, is not tried. ENDS_AT is a time of the
monotonic clock, which all processes of a computer share (clock_gettime(2)).
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.outputs import Inventory, InventoryNode, read_inventory

from clusterctl.home import Home
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.keys.login_keys import identities_for_ssh
from clusterctl.ssh.keys.openssh_files import login_key_file, write_known_hosts
from clusterctl.ssh.shared_session import relay
from clusterctl.ssh.shared_session_argv import own_session
from clusterctl.ssh.single.system_ssh import ALIVE_COUNT, ALIVE_INTERVAL_S, login_argv
from clusterctl.ssh.target import Target, target_of
from clusterctl.system.many_files import allow_many_files

TRIED = 2
"""How many nodes are tried, mostly slot 0 and one more; after that each node is reached by its own session."""
LOGIN_S = 12.0
"""From the start of the session to the login: ssh itself waits `relay.SILENT_S` for the greeting."""
LATE_S = 1.0
"""What still runs this long after ENDS_AT is broken off, which is before `relay.END_S` is over."""
KEPT_S = 600
"""How long the session is kept when nobody uses it: as long as the connections that commands leave behind."""
SILENCE_S = float(ALIVE_INTERVAL_S * ALIVE_COUNT)
"""As long as for a login: logins, copies and forwards to all nodes are in this connection, and would end with it."""
MOST_PASSED_OVER = 4
"""Masters that no longer lead may live on. While there are this many, each node is reached by its own session."""
MOST_PAUSE_S = 600.0
CONTROLS = "control-*"
EXIT_S = 2.0


def main(arguments: Sequence[str]) -> int:
    """0 when a session is open; else the reason is in `relay.FAILED`, and in the log."""
    home, cluster, silent, ends_at = Home(path=Path(arguments[0])), arguments[1], arguments[2], float(arguments[3])
    signal.signal(signal.SIGALRM, _break_off)
    signal.setitimer(signal.ITIMER_REAL, max(0.1, ends_at + LATE_S - time.monotonic()))
    allow_many_files()  # three descriptors for each node that is reached
    folder = home.warm_dir / relay.FOLDER_NAME / cluster
    tried: dict[str, str] = {}
    try:
        _refuse_too_many(folder)
        inventory = read_inventory(home.inventory_file(cluster))
        for node in candidates(inventory, silent):
            tried[str(node.instance_id)] = f"{node.name} did not log us in in time"
            reason = _reason_against(node, inventory, home, folder, ends_at)
            if reason is None:
                (folder / relay.FAILED).unlink(missing_ok=True)
                return 0
            tried[str(node.instance_id)] = f"{node.name} {reason}"
        reason = "; ".join(tried.values()) or "no node has a machine that could lead"
    except (ClusterctlError, NodeFailure, OSError, SystemExit) as e:
        reason = "; ".join([*tried.values(), str(e)])
    _write_failure(folder / relay.FAILED, tuple(tried), reason)
    return 1


def candidates(inventory: Inventory, silent: str) -> tuple[InventoryNode, ...]:
    """The nodes to try, in this order: by slot, and not the one that was silent."""
    there = [node for node in inventory.nodes if node.instance_id not in {None, silent}]
    return tuple(sorted(there, key=lambda node: node.slot)[:TRIED])


def master_argv(target: Target, inventory: Inventory, node: InventoryNode, home: Home, control: str) -> list[str]:
    """The argv of the ssh that goes into the background once it is logged in, and serves the socket `control`.

    ControlPersist has it go into the background. With `-f` it would do so even without its socket, where another one
    has that name, and stay for ever (ssh_session2 in OpenSSH's ssh.c, 9.2; 2026-11-26).
    Nothing of this computer is open to the node: no agent, no forwarding back, no command of the node's.
    """
    argv = login_argv(
        target,
        key_file=login_key_file(inventory, home),
        known_hosts=write_known_hosts(inventory, home),
        own=identities_for_ssh(replace(inventory, nodes=(node,)), home, Path.home() / ".ssh"),
        connect_timeout_s=relay.SILENT_S,
        silence_s=SILENCE_S,
    )
    kept = ("-N", "-M", "-S", control, "-o", f"ControlPersist={KEPT_S}", "-o", "BatchMode=yes")
    closed = ("-o", "ForwardAgent=no", "-o", "ForwardX11=no", "-o", "LogLevel=ERROR")
    return [*argv[:1], *kept, *closed, *argv[1:]]


def failure(before: Mapping[str, object], instances: Sequence[str], reason: str) -> dict[str, object]:
    """The record of a failed try: with twice the pause of the record before, if the same machines were tried."""
    pause_s, before_s = relay.FAILED_S, before.get("pause_s")
    if before.get("instances") == list(instances) and isinstance(before_s, int | float):
        pause_s = min(MOST_PAUSE_S, 2.0 * before_s)
    return {"reason": reason, "instances": list(instances), "pause_s": pause_s}


def end_master(folder: Path, control: str) -> None:
    """Ends the master at this socket, if there is one, and all connections in it."""
    if (folder / control).exists():
        argv, null = ["ssh", "-F", "none", "-S", control, "-O", "exit", "shared"], subprocess.DEVNULL
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(argv, cwd=folder, stdin=null, stdout=null, stderr=null, timeout=EXIT_S, check=False)
    (folder / control).unlink(missing_ok=True)


def _refuse_too_many(folder: Path) -> None:
    """Nobody leads now, so all sockets are of masters that were passed over. Raises OSError when they are too many."""
    living = [file for file in folder.glob(CONTROLS) if _is_living(file)]
    if len(living) >= MOST_PASSED_OVER:
        raise OSError(f"{len(living)} earlier sessions are in use still")


def _is_living(control: Path) -> bool:
    """Whether a master may listen at the socket in the working folder; where none does, it is removed.

    A master without channels ends after `KEPT_S`, and each question restarts that time: so a new socket is not asked.
    """
    try:
        if time.time() - control.stat().st_mtime < KEPT_S + 60:
            return True
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(EXIT_S)
            asking.connect(control.name)
        os.utime(control)
    except (FileNotFoundError, ConnectionRefusedError):
        control.unlink(missing_ok=True)
        return False
    except OSError:
        return True
    return True


def _reason_against(node: InventoryNode, inventory: Inventory, home: Home, folder: Path, ends_at: float) -> str | None:
    """None when this node leads to the others now; else why not, and a session that is half open is ended."""
    target = target_of(inventory, node)
    session = None if target.proxy_argv is None else own_session(target.proxy_argv)
    control = CONTROLS.replace("*", secrets.token_hex(4))
    leader = {
        "instance_id": str(node.instance_id), "host": target.host, "port": str(target.port), "control": control
    }  # fmt: skip
    argv = master_argv(replace(target, proxy_argv=session), inventory, node, home, control)
    is_leading = False
    try:
        if (reason := _reason_against_login(argv, folder, min(LOGIN_S, ends_at - time.monotonic()))) is not None:
            return reason
        is_leading = relay.answers(folder, leader, max(0.0, min(relay.SILENT_S, ends_at - time.monotonic())))
        if not is_leading:
            return "leads nowhere: it is silent, or its sshd has AllowTcpForwarding no"
        (folder / relay.LEADER).write_text(json.dumps(leader), encoding="utf-8")
        (folder / relay.HEARD).touch()
        return None
    finally:
        if not is_leading:
            end_master(folder, control)


def _reason_against_login(argv: Sequence[str], folder: Path, within_s: float) -> str | None:
    """None once this ssh is logged in; else why it is not, and the ssh and its session have been ended."""
    log = folder / relay.LOG
    before = log.stat().st_size
    is_logged_in = False
    ssh = subprocess.Popen(
        argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        is_logged_in = ssh.wait(timeout=max(0.0, within_s)) == 0
    except subprocess.TimeoutExpired:
        return f"did not log us in within {within_s:.0f} s"
    finally:
        if not is_logged_in:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(ssh.pid, signal.SIGKILL)  # the session's programs are in its group
            ssh.wait()
    if is_logged_in:
        return None
    lines = log.read_bytes()[before:].decode(errors="replace").strip().splitlines()
    return f"did not log us in: {lines[-1] if lines else f'ssh ended with {ssh.returncode}'}"


def _break_off(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit("it took too long")


def _write_failure(file: Path, instances: Sequence[str], reason: str) -> None:
    before: object = None
    with contextlib.suppress(OSError, ValueError):
        before = json.loads(file.read_bytes())
    failed = failure(before if isinstance(before, dict) else {}, instances, reason)
    sys.stderr.write(f"{reason}; next try in {failed['pause_s']:g} s\n")  # the log in the folder
    file.write_text(json.dumps(failed), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
