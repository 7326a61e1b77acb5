"""Machines booted by systemd-nspawn: real systemd, real cloud-init, real sshd. Needs root."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from clusterctl_rehearsal.machines import cgroup, network, owners, processes
from clusterctl_rehearsal.machines.container import launch, to_json
from clusterctl_rehearsal.machines.detached import start_detached
from clusterctl_rehearsal.machines.driver import MachineError, MachineSpec, MachineState
from clusterctl_rehearsal.machines.folders import MachineFolder, console_text, remove_tree
from clusterctl_rehearsal.machines.image import ensure_image, host_recipe, image_folder
from clusterctl_rehearsal.machines.inotify import InotifyLimit
from clusterctl_rehearsal.machines.names import cluster_namespace
from clusterctl_rehearsal.machines.recipe import ImageRecipe
from clusterctl_rehearsal.machines.requirements import what_is_missing
from clusterctl_rehearsal.machines.seed import place, seed_files
from clusterctl_rehearsal.machines.tidy import tidy

_TOOLS = {
    "systemd-nspawn": "systemd-container",
    "mmdebstrap": "mmdebstrap",
    "nft": "nftables",
    "ip": "iproute2",
    "unshare": "util-linux",
}
_SETTLE_TIMEOUT_S = 30.0
_LOOKS = 5
_log = logging.getLogger(__name__)


class NspawnDriver:
    """Boots each machine as a container with a network, cgroup and disk layer of its own."""

    def __init__(self, *, root: Path, cache: Path, notice: Callable[[str], None] = _log.warning) -> None:
        """`notice` is called with a sentence about each change to the whole computer."""
        self.root = root
        self.cache = cache
        self.notice = notice

    @cached_property
    def _recipe(self) -> ImageRecipe:
        return host_recipe()

    @cached_property
    def _trees(self) -> cgroup.CgroupTrees:
        # The region looks at each machine four times a second.
        return cgroup.mounted_trees()

    @property
    def name(self) -> str:
        """The driver's name."""
        return "nspawn"

    def unusable(self) -> str | None:
        """Why booted machines do not work here, with the command that helps."""
        missing = what_is_missing("booted", _TOOLS, platform=sys.platform, find=shutil.which, user_id=os.geteuid())
        if missing is not None:
            return missing
        try:
            cgroup.mounted_trees()
        except MachineError as error:
            return f"{error}: {error.hint}"
        return None

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Build the base image if it is not in the cache."""
        ensure_image(self.cache, self._recipe, progress)

    def create_network(self, cluster: str, cidr: str, gateway_ip: str) -> None:
        """Make the cluster's VPC namespace."""
        network.create(cluster, cidr, gateway_ip)

    def delete_network(self, cluster: str) -> None:
        """Remove the cluster's VPC namespace, with any machine left in it."""
        self.clean(cluster)

    def listen(self, cluster: str, address: str, port: int) -> socket.socket:
        """A listening socket in the VPC. Close it, or the namespace outlives delete_network."""
        return network.listen(cluster, address, port)

    def boot(self, spec: MachineSpec) -> None:
        """Start a machine; returns when nspawn runs, before the machine's systemd is up."""
        folder = self._folder(spec.cluster, spec.node)
        if self.state(spec.cluster, spec.node) is not MachineState.GONE:
            raise MachineError(f"{spec.node} of {spec.cluster} is already running")
        self.kill(spec.cluster, spec.node)
        image = image_folder(self.cache, self._recipe)
        if not image.exists():
            raise MachineError("the base image is not built", "clusterctl rehearse image")
        try:
            for path in (folder.upper, folder.work, folder.disk):
                path.mkdir(parents=True, mode=0o755)
            self._make_room()
            place(folder.upper, image, seed_files(spec))
            folder.launch.write_text(to_json(launch(spec, lower=str(image), disk=str(folder.disk))))
            network.attach(
                spec.cluster,
                spec.node,
                address=spec.private_ip,
                prefix_length=spec.prefix_length,
                gateway_ip=spec.gateway_ip,
                mac=spec.mac,
            )
            arguments = (str(self.root), spec.cluster, spec.node)
            problem = start_detached(processes.SUPERVISOR_MODULE, arguments, folder.path / "supervisor.log")
            if problem is not None:
                raise MachineError(f"{spec.node} of {spec.cluster} did not start: {problem}")
        except BaseException:
            tidy(cgroup.mounted_trees(), folder)
            raise

    def state(self, cluster: str, node: str) -> MachineState:
        """The machine's state, from the kernel; waits while a machine is between the two boots of a reboot."""
        deadline = time.monotonic() + _SETTLE_TIMEOUT_S
        while True:
            state = cgroup.state(self._trees, cluster, node)
            if state is not MachineState.GONE or not self._supervisors(cluster, node):
                return state
            if time.monotonic() > deadline:
                return state
            time.sleep(0.02)

    def console_tail(self, cluster: str, node: str, lines: int) -> str:
        """The last lines of the console, from the record of its end if it has ended."""
        return console_text(self._folder(cluster, node), lines)

    def kill(self, cluster: str, node: str) -> None:
        """End a machine at once and remove everything of it."""
        processes.end_supervisors(self._supervisors(cluster, node))
        folder = self._folder(cluster, node)
        tidy(cgroup.mounted_trees(), folder)
        folder.ended.unlink(missing_ok=True)

    def freeze(self, cluster: str, node: str) -> None:
        """Stop all processes of a machine; its address still answers to TCP, nothing else does."""
        cgroup.freeze(self._trees_of_running(cluster, node), cluster, node, frozen=True)

    def thaw(self, cluster: str, node: str) -> None:
        """Let a frozen machine go on."""
        cgroup.freeze(self._trees_of_running(cluster, node), cluster, node, frozen=False)

    def unplug(self, cluster: str, node: str) -> None:
        """Take a machine off its network."""
        network.set_plugged(cluster, node, plugged=False)

    def plug(self, cluster: str, node: str) -> None:
        """Put a machine back on its network."""
        network.set_plugged(cluster, node, plugged=True)

    def partition(self, cluster: str, node_a: str, node_b: str) -> None:
        """Part two machines; the rest of the cluster and the caller reach both."""
        network.partition(cluster, node_a, node_b)

    def heal(self, cluster: str) -> None:
        """End every partition and every limited link of a cluster."""
        network.heal(cluster)

    def slow(self, cluster: str, node: str, rate_mbit: int) -> None:
        """Limit both directions of a machine's link."""
        network.slow(cluster, node, rate_mbit)

    def reboot(self, cluster: str, node: str) -> None:
        """Ask the machine's systemd for an orderly reboot, as a power button's signal would."""
        first = cgroup.first_process(self._trees_of_running(cluster, node), cluster, node)
        if first is None:
            raise MachineError(f"{node} of {cluster} is not up far enough to be rebooted")
        os.kill(first, signal.SIGRTMIN + 5)  # systemd(1): starts reboot.target

    def found(self) -> tuple[tuple[str, str], ...]:
        """The living machines, found by their cgroups; also removes what dead machines without a supervisor left."""
        trees = cgroup.mounted_trees()
        alive = []
        for cluster, node in cgroup.machines(trees):
            if self.state(cluster, node) is not MachineState.GONE:
                alive.append((cluster, node))
            elif not self._supervisors(cluster, node):
                tidy(trees, self._folder(cluster, node))
        return tuple(alive)

    def clean(self, cluster: str) -> None:
        """Remove everything of a cluster, found by cgroup, namespace, process and folder; nothing of another home's."""
        if owners.root_elsewhere(self.root, cluster) is not None:
            return
        trees = cgroup.mounted_trees()
        # First: a supervisor that has not read its file yet starts nothing; one that has read it is found below.
        for file in (self.root / cluster).glob("*/launch.json"):
            file.unlink(missing_ok=True)
        supervisors = self._end_supervisors(cluster)
        processes.wait_until_made(f"{cluster_namespace(cluster)}.")
        nodes = {node for name, node in cgroup.machines(trees) if name == cluster}
        nodes |= set(network.machine_namespaces(cluster))
        nodes |= {path.name for path in (self.root / cluster).glob("*/")}
        for node in nodes:
            cgroup.kill(trees, cluster, node)
        for node in sorted(nodes):
            tidy(trees, self._folder(cluster, node))
        for supervisor in supervisors:  # their home may be removed by now
            remove_tree(Path(supervisor.root) / cluster / supervisor.node)
        network.delete(cluster)
        cgroup.remove_cluster(trees, cluster)
        remove_tree(self.root / cluster)

    def _end_supervisors(self, cluster: str) -> list[processes.Supervisor]:
        """End all supervisors of a cluster and return them; looks several times, as one forks when it starts."""
        ended: list[processes.Supervisor] = []
        for _ in range(_LOOKS):
            found = [each for each in processes.supervisors() if each.cluster == cluster]
            if not found:
                break
            processes.end_supervisors(found)
            ended += found
        return ended

    def _make_room(self) -> None:
        begun = len(list(self.root.glob("*/*/upper")))  # machines that boot right now have no cgroup yet
        alive = len(list(cgroup.machines(cgroup.mounted_trees())))
        sentence = InotifyLimit().make_room(max(begun, alive))
        if sentence is not None:
            self.notice(sentence)

    def _folder(self, cluster: str, node: str) -> MachineFolder:
        return MachineFolder(root=self.root, cluster=cluster, node=node)

    def _trees_of_running(self, cluster: str, node: str) -> cgroup.CgroupTrees:
        trees = cgroup.mounted_trees()
        if cgroup.state(trees, cluster, node) is MachineState.GONE:
            raise MachineError(f"{node} of {cluster} does not run")
        return trees

    def _supervisors(self, cluster: str, node: str) -> list[processes.Supervisor]:
        wanted = (cluster, node)
        return [found for found in processes.supervisors() if (found.cluster, found.node) == wanted]
