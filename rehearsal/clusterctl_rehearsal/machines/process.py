"""Machines that are an sshd and the node agent in namespaces: no root, no systemd, no cloud-init."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from clusterctl_rehearsal.machines import machine_processes, owners, processes, rootless_network
from clusterctl_rehearsal.machines.bubble import OVERLAID_FOLDERS, BubbleLaunch, HostRoot, bwrap_argv, to_json
from clusterctl_rehearsal.machines.connect import open_listener
from clusterctl_rehearsal.machines.detached import search_path, start_detached
from clusterctl_rehearsal.machines.disturbance import full_rate_argv, healing_rules, partition_rules, rate_argv
from clusterctl_rehearsal.machines.driver import MachineError, MachineFile, MachineSpec, MachineState
from clusterctl_rehearsal.machines.folders import MachineFolder, console_text, remove_tree
from clusterctl_rehearsal.machines.names import LOGIN_USER, MACHINE_INTERFACE, bridge_port
from clusterctl_rehearsal.machines.requirements import what_is_missing
from clusterctl_rehearsal.machines.seed import place
from clusterctl_rehearsal.machines.unprivileged_root import root_files
from clusterctl_rehearsal.machines.user_data import unpack

_TOOLS = {
    "bwrap": "bubblewrap",
    "sshd": "openssh-server",
    "nft": "nftables",
    "ip": "iproute2",
    "nsenter": "util-linux",
}
_OWN_FOLDERS = ("etc", "usr", "home", "var", "root")
_KERNEL_TEST_TIMEOUT_S = 20.0
# Does, in namespaces that end with it, everything that a machine needs the kernel to allow.
_KERNEL_TEST_SCRIPT = """
mount -t tmpfs tmpfs /tmp
mkdir /tmp/upper /tmp/work
mount -t overlay overlay -o lowerdir=/etc,upperdir=/tmp/upper,workdir=/tmp/work,userxattr /tmp/upper
mount -t sysfs sysfs /sys
exec bwrap --unshare-user --uid 1000 --unshare-pid --ro-bind / / --dev /dev --proc /proc true
"""
_KERNEL_TEST = ("unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-ec", _KERNEL_TEST_SCRIPT)
_SETTLE_TIMEOUT_S = 10.0


class ProcessDriver:
    """Starts each machine as a bwrap with its own processes, files and network."""

    def __init__(self, *, root: Path) -> None:
        self.root = root
        self._states = machine_processes.MachineStates()

    @property
    def name(self) -> str:
        """The driver's name."""
        return "process"

    def unusable(self) -> str | None:
        """Why process machines do not work here, with the command that helps."""
        find = partial(shutil.which, path=search_path())
        missing = what_is_missing("process", _TOOLS, platform=sys.platform, find=find)
        if missing is not None:
            return missing
        try:
            done = subprocess.run(_KERNEL_TEST, capture_output=True, text=True, timeout=_KERNEL_TEST_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            limit = f"{_KERNEL_TEST_TIMEOUT_S:g} s"
            return f"whether this user can make namespaces is not known: a test of it took more than {limit}"
        return None if done.returncode == 0 else refusal(done.stderr)

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Nothing: these machines use the host's own programs."""

    def create_network(self, cluster: str, cidr: str, gateway_ip: str) -> None:
        """Make the cluster's VPC in a user namespace."""
        rootless_network.create(self.root, cluster, cidr, gateway_ip)

    def delete_network(self, cluster: str) -> None:
        """End the cluster's holder and network, with any machine left in it."""
        self.clean(cluster)

    def listen(self, cluster: str, address: str, port: int) -> socket.socket:
        """A listening socket in the VPC."""
        rootless_network.add_address(cluster, address)
        return open_listener(str(self.root), cluster, address, port)

    def boot(self, spec: MachineSpec) -> None:
        """Start a machine; returns when its bwrap runs. User-data is unpacked, not executed."""
        if self.state(spec.cluster, spec.node) is not MachineState.GONE:
            raise MachineError(f"{spec.node} of {spec.cluster} is already running")
        self.kill(spec.cluster, spec.node)
        folder = self._folder(spec.cluster, spec.node)
        try:
            self._make_disk(spec, folder)
            folder.launch.write_text(to_json(_launch(spec, folder)))
            arguments = (str(self.root), spec.cluster, spec.node)
            problem = start_detached(processes.PROCESS_SUPERVISOR_MODULE, arguments, folder.path / "supervisor.log")
            if problem is not None:
                raise MachineError(f"{spec.node} of {spec.cluster} did not start: {problem}")
        except BaseException:
            remove_tree(folder.path)
            raise

    def state(self, cluster: str, node: str) -> MachineState:
        """The machine's state, from the kernel; waits while a machine is between the two starts of a reboot."""
        deadline = time.monotonic() + _SETTLE_TIMEOUT_S
        while True:
            state = self._states.state(cluster, node)
            settled = state is not MachineState.GONE or not self._supervisors(cluster, node)
            if settled or time.monotonic() > deadline:
                return state
            time.sleep(0.02)

    def console_tail(self, cluster: str, node: str, lines: int) -> str:
        """What sshd and the agent printed, from the record of its end if it has ended."""
        return console_text(self._folder(cluster, node), lines)

    def kill(self, cluster: str, node: str) -> None:
        """End a machine at once and remove everything of it."""
        processes.end_supervisors(self._supervisors(cluster, node))
        self._end_processes(cluster, node)
        folder = self._folder(cluster, node)
        remove_tree(folder.path)
        folder.ended.unlink(missing_ok=True)

    def freeze(self, cluster: str, node: str) -> None:
        """Stop all processes of a machine; its address still answers to TCP, nothing else does."""
        first = self._first(cluster, node)
        machine_processes.send_to_all(first, signal.SIGSTOP)
        machine_processes.wait_until_stopped(first)

    def thaw(self, cluster: str, node: str) -> None:
        """Let a frozen machine go on."""
        machine_processes.send_to_all(self._first(cluster, node), signal.SIGCONT)

    def unplug(self, cluster: str, node: str) -> None:
        """Take a machine off its network."""
        self._change_network(cluster, f"link set {bridge_port(node)} down")

    def plug(self, cluster: str, node: str) -> None:
        """Put a machine back on its network."""
        self._change_network(cluster, f"link set {bridge_port(node)} up")

    def partition(self, cluster: str, node_a: str, node_b: str) -> None:
        """Part two machines; the rest of the cluster and the caller reach both."""
        holder = rootless_network.required_holder(cluster)
        rootless_network.run(holder, ("nft", "-f", "-"), partition_rules(node_a, node_b))

    def heal(self, cluster: str) -> None:
        """End every partition and every limited link of a cluster."""
        holder = rootless_network.required_holder(cluster)
        rootless_network.run(holder, ("nft", "-f", "-"), healing_rules())
        for name, node in machine_processes.machines():
            if name == cluster:
                for process_id, interface in self._link_ends(cluster, node):
                    rootless_network.run(process_id, ("tc", *full_rate_argv(interface)), tolerant=True)

    def slow(self, cluster: str, node: str, rate_mbit: int) -> None:
        """Limit both directions of a machine's link."""
        for process_id, interface in self._link_ends(cluster, node):
            rootless_network.run(process_id, ("tc", *rate_argv(interface, rate_mbit)))

    def reboot(self, cluster: str, node: str) -> None:
        """End the machine's processes and start them again over the same files."""
        os.kill(self._first(cluster, node), signal.SIGHUP)

    def found(self) -> tuple[tuple[str, str], ...]:
        """The living machines, found by the command lines of their processes."""
        return tuple(sorted(machine_processes.machines()))

    def clean(self, cluster: str) -> None:
        """Remove everything of a cluster, found by its processes and folder; nothing of another home's."""
        if owners.root_elsewhere(self.root, cluster) is not None:
            return
        self.end(cluster)
        remove_tree(self.root / cluster)

    def end(self, cluster: str) -> None:
        """End every process of a cluster, whoever started it, and its network; its files stay."""
        module = processes.PROCESS_SUPERVISOR_MODULE
        processes.end_supervisors([found for found in processes.supervisors(module) if found.cluster == cluster])
        for name, node in machine_processes.machines():
            if name == cluster:
                self._end_processes(cluster, node)
        rootless_network.delete(cluster)

    def _folder(self, cluster: str, node: str) -> MachineFolder:
        return MachineFolder(root=self.root, cluster=cluster, node=node)

    def _supervisors(self, cluster: str, node: str) -> list[processes.Supervisor]:
        found = processes.supervisors(processes.PROCESS_SUPERVISOR_MODULE)
        return [each for each in found if (each.cluster, each.node) == (cluster, node)]

    def _end_processes(self, cluster: str, node: str) -> None:
        """Kill a machine's bwrap and first process; with these everything in it ends."""
        for process_id in machine_processes.machines().get((cluster, node), []):
            processes.send(process_id, signal.SIGKILL)
            processes.wait_until_gone(process_id)

    def _first(self, cluster: str, node: str) -> int:
        first = machine_processes.first_process(cluster, node)
        if first is None:
            raise MachineError(f"{node} of {cluster} does not run")
        return first

    def _change_network(self, cluster: str, command: str) -> None:
        rootless_network.batch(rootless_network.required_holder(cluster), (command,))

    def _link_ends(self, cluster: str, node: str) -> tuple[tuple[int, str], tuple[int, str]]:
        holder = rootless_network.required_holder(cluster)
        return (holder, bridge_port(node)), (self._supervised(cluster, node), MACHINE_INTERFACE)

    def _supervised(self, cluster: str, node: str) -> int:
        """A process in the machine's network whose user namespace owns that network."""
        supervisors = self._supervisors(cluster, node)
        return supervisors[0].process_id if supervisors else self._first(cluster, node)

    def _make_disk(self, spec: MachineSpec, folder: MachineFolder) -> None:
        for name in _OWN_FOLDERS:
            (folder.upper / name).mkdir(parents=True, mode=0o755)
        for name in OVERLAID_FOLDERS:
            (folder.work / name).mkdir(parents=True)
        first = Path(__file__).with_name("first_process.py").read_bytes()
        files = {**root_files(spec, unpack(spec.user_data)), processes.FIRST_PROCESS: MachineFile(content=first)}
        place(folder.upper, Path("/"), files)
        (folder.upper / "home" / LOGIN_USER / ".ssh" / "environment").symlink_to("/etc/clusterctl/env.list")
        for name in ("lib/clusterctl", "log", "tmp"):
            (folder.upper / "var" / name).mkdir(parents=True, exist_ok=True)


def refusal(message: str) -> str:
    """One sentence for a failed test of the kernel, with the command that allows what it needs."""
    reason = (message.strip().splitlines() or ["no reason given"])[-1]
    return (
        f"this computer does not let this user make namespaces ({reason}): "
        "sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"
    )


def host_root(upper: Path) -> HostRoot:
    """What the top level of a machine's root consists of on this host."""
    system = [Path("/", name) for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32")]
    folders = tuple(sorted(path.name for path in upper.iterdir()))
    return HostRoot(
        folders=folders,
        links=tuple((path.name, os.readlink(path)) for path in system if path.is_symlink()),
        read_only=tuple(path.name for path in system if path.is_dir() and not path.is_symlink()),
    )


def _launch(spec: MachineSpec, folder: MachineFolder) -> BubbleLaunch:
    python = Path(sys.executable).resolve()
    return BubbleLaunch(
        argv=bwrap_argv(
            spec,
            disk=str(folder.upper),
            host=host_root(folder.upper),
            python=str(python),
            python_folder=str(python.parent.parent),
        ),
        bridge_port=bridge_port(spec.node),
        mac=spec.mac,
        address=spec.private_ip,
        prefix_length=spec.prefix_length,
        gateway_ip=spec.gateway_ip,
    )
