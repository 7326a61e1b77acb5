"""The process beside an unprivileged machine: its network, its disk, its starts and its end.

    python -S -m clusterctl_rehearsal.machines.process_supervisor ROOT CLUSTER NODE

Lives in the machine's own network namespace, inside the user namespace of the cluster's
holder. SIGTERM powers the machine off, SIGUSR1 ends it at once. If the supervisor itself is
killed, the machine runs on.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from clusterctl_rehearsal.machines.bubble import OVERLAID_FOLDERS, BubbleLaunch, from_json
from clusterctl_rehearsal.machines.detached import STARTED, become_independent, tell
from clusterctl_rehearsal.machines.first_process import DEADLINE_EXIT_CODE, REBOOT_EXIT_CODE
from clusterctl_rehearsal.machines.folders import MachineFolder, remove_tree, write_end
from clusterctl_rehearsal.machines.kernel import (
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWUSER,
    MNT_DETACH,
    MS_PRIVATE,
    MS_REC,
    mount,
    set_namespace,
    unmount,
    unshare,
)
from clusterctl_rehearsal.machines.machine_processes import first_process
from clusterctl_rehearsal.machines.names import BRIDGE, MACHINE_INTERFACE
from clusterctl_rehearsal.machines.processes import END_NOW_SIGNAL
from clusterctl_rehearsal.machines.rootless_network import required_holder

_POWER_OFF_TIMEOUT_S = 10
_TIMEOUT_S = 20.0
_SIGNAL_EXIT_CODE = 128
_ENDS = {0: "powered off", DEADLINE_EXIT_CODE: "its deadline passed"}


def main(arguments: list[str]) -> None:
    """Become independent, start the machine, report that on standard output, stay until its end."""
    root, cluster, node = arguments
    folder = MachineFolder(root=Path(root), cluster=cluster, node=node)
    become_independent()
    lock = folder.lock.open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        machine = ProcessMachine(folder=folder, launch=from_json(folder.launch.read_text()))
        machine.join_network(required_holder(cluster))
        machine.mount_disk()
        machine.start()
    except Exception as error:  # the caller gets it through `tell`, and raises it
        tell(f"{error}")
        remove_tree(folder.path)
        raise
    tell(STARTED)
    how = machine.wait()
    for name in OVERLAID_FOLDERS:
        unmount(str(folder.upper / name), MNT_DETACH)
    write_end(folder, how)
    remove_tree(folder.path)


@dataclass(kw_only=True)
class ProcessMachine:
    """A running bwrap, the overlay it runs on and the network it is in."""

    folder: MachineFolder
    launch: BubbleLaunch
    process: subprocess.Popen[bytes] | None = None
    is_stopping: bool = False

    def join_network(self, holder: int) -> None:
        """Make the machine's network namespace and its link to the cluster's bridge.

        The link's far end is made in the holder's network by its process id, and attached
        there by a child, because this process stays in the new namespace.
        """
        descriptors = [os.open(f"/proc/{holder}/ns/{kind}", os.O_RDONLY) for kind in ("user", "net")]
        set_namespace(descriptors[0], CLONE_NEWUSER)
        unshare(CLONE_NEWNET | CLONE_NEWNS)
        network = descriptors[1]
        in_cluster = ["nsenter", f"--net=/proc/self/fd/{network}", "ip"]
        # The kernel takes a machine's link away some time after its end, and this one may have the same name.
        with contextlib.suppress(OSError):
            _run([*in_cluster, "link", "del", self.launch.bridge_port], "", network)
        _run(["ip", "-batch", "-"], "\n".join(self._link_commands(holder)))
        Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").write_text("0")
        gateway = f"addr replace {self.launch.gateway_ip}/{self.launch.prefix_length} dev {BRIDGE}"
        attach = f"link set {self.launch.bridge_port} master {BRIDGE} up"
        _run([*in_cluster, "-batch", "-"], f"{gateway}\n{attach}", network)
        _run(["ip", "route", "add", "default", "via", self.launch.gateway_ip])
        for descriptor in descriptors:
            os.close(descriptor)

    def mount_disk(self) -> None:
        """Mount the machine's layers over the host's folders, and a /sys of this network only."""
        mount("none", "/", "none", MS_REC | MS_PRIVATE, "")
        for name in OVERLAID_FOLDERS:
            upper, work = self.folder.upper / name, self.folder.work / name
            layers = f"lowerdir=/{name},upperdir={upper},workdir={work},userxattr"
            mount("overlay", str(upper), "overlay", 0, layers)
        mount("sysfs", "/sys", "sysfs", 0, "")

    def start(self) -> None:
        """Start bwrap, whose first process is the machine's."""
        signal.signal(signal.SIGTERM, lambda *_: self.stop())
        signal.signal(signal.SIGALRM, lambda *_: self.end_now())
        signal.signal(END_NOW_SIGNAL, lambda *_: self.end_now())
        with self.folder.console.open("ab") as console:
            self.process = subprocess.Popen(
                self.launch.argv,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                cwd="/",
                start_new_session=True,
            )

    def stop(self) -> None:
        """Ask the machine to power off, and end it if it does not."""
        self.is_stopping = True
        self._send(signal.SIGTERM)
        signal.alarm(_POWER_OFF_TIMEOUT_S)

    def end_now(self) -> None:
        """Kill everything in the machine: all processes end with its first one."""
        self.is_stopping = True
        self._send(signal.SIGKILL)

    def wait(self) -> str:
        """Wait until the machine has ended, through any reboots; returns how it ended."""
        while True:
            assert self.process is not None
            code = self.process.wait()
            if code != REBOOT_EXIT_CODE or self.is_stopping:
                return how_it_ended(code)
            self.start()

    def _send(self, number: signal.Signals) -> None:
        first = first_process(self.folder.cluster, self.folder.node)
        if first is not None:
            os.kill(first, number)
        elif self.process is not None:
            self.process.kill()

    def _link_commands(self, holder: int) -> tuple[str, ...]:
        launch = self.launch
        return (
            "link set lo up",
            f"link add {MACHINE_INTERFACE} type veth peer name {launch.bridge_port} netns {holder}",
            f"link set {MACHINE_INTERFACE} address {launch.mac}",
            f"addr add {launch.address}/{launch.prefix_length} dev {MACHINE_INTERFACE}",
            f"link set {MACHINE_INTERFACE} up",
        )


def how_it_ended(code: int) -> str:
    """A machine's end in words, from the exit code of bwrap: 128 plus the signal if its first process was killed;
    minus the signal if bwrap itself was.
    """
    if code in _ENDS:
        return _ENDS[code]
    if code < 0 or code > _SIGNAL_EXIT_CODE:
        return f"killed by signal {abs(code) % _SIGNAL_EXIT_CODE}"
    return f"ended with exit code {code}"


def _run(argv: list[str], text: str = "", *inherited: int) -> None:
    done = subprocess.run(argv, input=text, text=True, capture_output=True, timeout=_TIMEOUT_S, pass_fds=inherited)
    if done.returncode != 0:
        raise OSError(f"{' '.join(argv)}: {done.stderr.strip()}")


if __name__ == "__main__":
    main(sys.argv[1:])
