"""The process beside a machine: it starts the machine, restarts it on a reboot, and cleans up at its end.

    python -S -m clusterctl_rehearsal.machines.supervisor ROOT CLUSTER NODE

It outlives the caller of `boot`, and ends with its machine. SIGTERM powers the machine off, SIGUSR1 ends it at
once. If the supervisor itself is killed, the machine runs on, and the next `found`, `clean` or `kill` tidies up.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

from clusterctl_rehearsal.machines import cgroup
from clusterctl_rehearsal.machines.container import (
    REBOOT_EXIT_CODE,
    Launch,
    from_json,
    how_it_ended,
)
from clusterctl_rehearsal.machines.detached import STARTED, become_independent, tell
from clusterctl_rehearsal.machines.folders import MachineFolder, write_end
from clusterctl_rehearsal.machines.kernel import (
    CLONE_NEWNET,
    CLONE_NEWNS,
    MNT_DETACH,
    MS_PRIVATE,
    MS_REC,
    mount,
    set_namespace,
    unmount,
    unshare,
)
from clusterctl_rehearsal.machines.network import NAMESPACE_FOLDER
from clusterctl_rehearsal.machines.processes import END_NOW_SIGNAL
from clusterctl_rehearsal.machines.tidy import tidy

_POWER_OFF_TIMEOUT_S = 20


def main(arguments: list[str]) -> None:
    """Become independent, start the machine, report that on standard output, stay until its end."""
    root, cluster, node = arguments
    folder = MachineFolder(root=Path(root), cluster=cluster, node=node)
    become_independent()
    lock = folder.lock.open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    trees = cgroup.mounted_trees()
    try:
        machine = Machine(folder=folder, trees=trees, launch=from_json(folder.launch.read_text()))
        machine.mount_disk()
        machine.start()
    except Exception as error:  # the caller gets it through `tell`, and raises it
        tell(f"{error}")
        tidy_up(trees, folder)
        raise
    tell(STARTED)
    if machine.is_stopping or not folder.launch.exists():  # asked to end, or its cluster cleaned, during the start
        machine.end_now()
    how = machine.wait()
    with contextlib.suppress(OSError):  # a clean of its cluster has removed the files
        unmount(str(folder.disk), MNT_DETACH)
        write_end(folder, how)
    tidy_up(trees, folder)


def tidy_up(trees: cgroup.CgroupTrees, folder: MachineFolder) -> None:
    """Remove what the machine leaves behind, and its cluster's cgroup if the cluster was cleaned meanwhile."""
    tidy(trees, folder)
    if not folder.path.parent.exists():
        cgroup.remove_cluster(trees, folder.cluster)


@dataclass(kw_only=True)
class Machine:
    """A running nspawn and the overlay it runs on."""

    folder: MachineFolder
    trees: cgroup.CgroupTrees
    launch: Launch
    process_id: int = 0
    is_stopping: bool = False
    network: int = field(default=-1)

    def mount_disk(self) -> None:
        """Mount the machine's root where nobody else sees it.

        The namespaces of other machines are unmounted from this copy of the mount table:
        they could never be freed as long as this process lives.
        """
        path = NAMESPACE_FOLDER / self.launch.network_namespace
        self.network = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        unshare(CLONE_NEWNS)
        mount("none", "/", "none", MS_REC | MS_PRIVATE, "")
        unmount(str(NAMESPACE_FOLDER), MNT_DETACH)
        layers = f"lowerdir={self.launch.lower},upperdir={self.folder.upper},workdir={self.folder.work}"
        mount("overlay", str(self.folder.disk), "overlay", 0, layers)

    def start(self) -> None:
        """Start nspawn in the machine's cgroup and network; OSError if it cannot be started."""
        signal.signal(signal.SIGTERM, lambda *_: self.stop())
        signal.signal(signal.SIGALRM, lambda *_: self.end_now())
        signal.signal(END_NOW_SIGNAL, lambda *_: self.end_now())
        cgroup.create(self.trees, self.folder.cluster, self.folder.node)
        answer, question = os.pipe()
        self.process_id = os.fork()
        if self.process_id == 0:
            self._become_container(question)
        os.close(question)
        with os.fdopen(answer) as reader:
            problem = reader.read()
        if problem:
            os.waitpid(self.process_id, 0)
            raise OSError(problem)

    def stop(self) -> None:
        """Ask the machine to power off, and end it if it does not."""
        self.is_stopping = True
        os.kill(self.process_id, signal.SIGTERM)
        signal.alarm(_POWER_OFF_TIMEOUT_S)

    def end_now(self) -> None:
        """Kill everything in the machine, for good."""
        self.is_stopping = True
        cgroup.kill(self.trees, self.folder.cluster, self.folder.node)

    def wait(self) -> str:
        """Wait until the machine has ended, through any reboots; returns how it ended."""
        while True:
            _, status = os.waitpid(self.process_id, 0)
            code = os.waitstatus_to_exitcode(status)
            if code != REBOOT_EXIT_CODE or self.is_stopping:
                return how_it_ended(code)
            cgroup.kill(self.trees, self.folder.cluster, self.folder.node)
            cgroup.remove(self.trees, self.folder.cluster, self.folder.node)
            self.start()
            if self.is_stopping:  # it was asked to end while the cgroup was still empty
                self.end_now()

    def _become_container(self, question: int) -> None:
        try:
            for number in (signal.SIGTERM, signal.SIGALRM, END_NOW_SIGNAL):
                signal.signal(number, signal.SIG_DFL)
            cgroup.enter(self.trees, self.folder.cluster, self.folder.node)
            set_namespace(self.network, CLONE_NEWNET)
            console = os.open(self.folder.console, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            nothing = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((nothing, 0), (console, 1), (console, 2)):
                os.dup2(source, target)
            os.execvp(self.launch.argv[0], self.launch.argv)
        except OSError as error:
            os.write(question, f"{self.launch.argv[0]}: {error}".encode())
            os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
