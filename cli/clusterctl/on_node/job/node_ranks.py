"""The processes of a job on one node: the launcher or the ranks themselves, started, looked at and stopped."""

from __future__ import annotations

import os
import pwd
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterable, Mapping, Optional

from clusterctl.on_node.job import container, launch, launchers
from clusterctl.on_node.job.job_containers import JobContainers
from clusterctl.on_node.job.job_environment import job_environment, job_folder, own_secrets
from clusterctl.on_node.job.layout import Layout
from clusterctl.on_node.job.mpi_agent import orders_of
from clusterctl.on_node.job.out_of_memory import OutOfMemory
from clusterctl.on_node.job.output_log import LauncherOutput, OutputLog
from clusterctl.on_node.job.output_socket import OUTPUT_VARIABLE, OutputReceiver, opened_door
from clusterctl.on_node.job.processes import is_alive, of_job, reap, seen_from_here
from clusterctl.on_node.job.processes import send as send_signal
from clusterctl.on_node.job.rank_end import rank_end, rank_parent
from clusterctl.on_node.job.redaction import hidden_bytes

POLL_S = 0.05
LAST_WORDS_S = 1.0
"""How long a launcher's last words are waited for once it has ended."""
RANK_FILE = re.compile(r"[0-9]{1,7}")
"""The name of a rank's file, which any process of the job may make: `²` is a digit for Python, but not for int()."""


class NodeRanks:
    """What runs on this node for one attempt of a job."""

    def __init__(self, layout: Layout, spec: dict[str, Any], node_rank: int, program: Path) -> None:
        self._layout = layout
        self._spec = container.renumbered(spec) if spec.get("image_id") else spec
        self._containers = JobContainers(layout, spec, node_rank, program) if spec.get("image_id") else None
        self._node_rank = node_rank
        self._program = program
        self._folder = layout.ranks(spec["job"], spec["attempt"])
        self._user = pwd.getpwnam(spec["user"])
        self._is_mpi = spec["launcher"] == launchers.MPI
        self._has_own_streams = spec["launcher"] in launchers.ONE_EACH
        """Whether each rank is started here, and has a pipe of its own for its output."""
        self._socket = layout.output(spec["job"], int(spec["attempt"]))
        self.receiver: Optional[OutputReceiver] = None
        """Takes what ranks' parents send to the socket; None: there is none."""
        self._log = OutputLog(layout.attempt(spec["job"], spec["attempt"]))
        hidden = hidden_bytes(own_secrets(layout.secrets(spec["job"]), self._user.pw_uid).values())
        self._output = LauncherOutput(self._log, hidden=hidden)
        self._children: list[subprocess.Popen[bytes]] = []
        self._carried_out: set[str] = set()
        self.is_started = False
        """Whether `start` was called."""
        self._out_of_memory = OutOfMemory()
        self._out_of_memory_ranks: set[int] = set()
        """The ranks that were killed for want of memory."""

    def start(self) -> None:
        """Starts the launcher or the ranks; one that cannot be started ends by itself, and says why in its output."""
        self.is_started = True
        self._log.begin()
        job = self._spec["job"]
        # In a container: the image's own Python, wherever that is.
        python = "python3" if self._containers is not None else sys.executable
        parent = [python, "-IS", str(self._program), "rank", str(self._folder), str(self._layout.secrets(job))]
        environment = self._environment()
        if not self._has_own_streams:
            self._receive_output()
        folder = str(self._layout.folder(job))
        for local_rank, argv in enumerate(launchers.argv(self._spec, self._node_rank, parent, folder)):
            own = launch.rank_environment(self._spec, self._node_rank, local_rank)
            self._start(argv, {**environment, **(own if self._has_own_streams else {})})

    def _receive_output(self) -> None:
        """Opens the socket. If that fails, ranks' parents find none, and write to their launcher."""
        try:
            receiver = OutputReceiver(opened_door(self._socket), self._user.pw_uid, self._output.follow)
            receiver.start()
            self.receiver = receiver
        except OSError as e:
            self.say("clusterctl: long lines of several ranks may mix: %s" % e)

    def orders(self) -> list[dict[str, Any]]:
        """What mpirun, which runs here, wants started on other nodes."""
        is_first = self._is_mpi and self._node_rank == 0
        return orders_of(self._spec, self._folder, self._user.pw_uid) if is_first else []

    def carry_out(self, orders: Iterable[Mapping[str, Any]]) -> None:
        """Starts here what mpirun has ordered, each order once."""
        for order in orders:
            if self._is_mpi and order["id"] not in self._carried_out:
                self._carried_out.add(str(order["id"]))
                self._start(["/bin/sh", "-c", str(order["command"])], self._environment(), is_daemon=True)

    def _start(self, argv: list[str], environment: dict[str, str], *, is_daemon: bool = False) -> None:
        if self._containers is not None:
            # The engine's command is root's, so it reads nothing that the job sets.
            try:
                argv = self._containers.argv(argv, environment, is_daemon=is_daemon)
            except (OSError, ValueError) as e:
                argv = refusal_argv(str(e))
            argv = [*self._with_rights("yes"), *argv]
            self._begin(argv, container.CLIENT_ENVIRONMENT, Path("/"), is_theirs=False)
            return
        argv = [*self._with_rights("yes" if self._spec["is_sudo"] else "no"), *argv]
        self._begin(argv, environment, job_folder(self._layout, self._spec), is_theirs=True)

    def _begin(self, argv: list[str], environment: Mapping[str, str], folder: Path, *, is_theirs: bool) -> None:
        user, is_root = self._user, os.getuid() == 0 and is_theirs
        child = subprocess.Popen(
            argv,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # Changed before anything reads the job's environment, of which LD_LIBRARY_PATH is a part.
            user=user.pw_uid if is_root else None,
            group=user.pw_gid if is_root else None,
            extra_groups=os.getgrouplist(user.pw_name, user.pw_gid) if is_root else None,
        )
        self._children.append(child)
        if child.stdout is not None:
            self._output.follow(child.stdout)

    def ended(self) -> list[dict[str, Any]]:
        """The ends of those ranks that have ended, as their parents wrote them down."""
        found = []
        self._out_of_memory.look()
        gone = self._gone_parents()  # before their words are read: a parent writes them before it ends
        for path in sorted(self._folder.glob("*.json")):
            try:
                end = rank_end(path, self._user.pw_uid)
            except (OSError, ValueError):
                continue  # not written by a rank's parent
            if end.get("signal") == signal.SIGKILL and (
                end["rank"] in self._out_of_memory_ranks or self._out_of_memory.is_near(end["at_s"])
            ):
                self._out_of_memory_ranks.add(end["rank"])
                end["is_out_of_memory"] = True
            found.append(end)
        return [*found, *self._vanished({path.stem for path in self._folder.glob("*.json")}, gone)]

    def has_launcher_ended(self) -> bool:
        """Whether all that we started has ended; on mpirun's other nodes, whether any of it has failed.

        What mpirun has started there goes to the background at once, and ends with mpirun.
        """
        if self._is_mpi and self._node_rank != 0:
            return any(child.poll() for child in self._children)
        return all(child.poll() is not None for child in self._children)

    def launcher_failure(self) -> dict[str, Any]:
        """The failure of a launcher that ended before all of its ranks had reported their ends."""
        self.drain(LAST_WORDS_S)
        last = self._output.last_lines()
        status = next((child.returncode for child in self._children if child.returncode), 0)
        how = "by signal %d" % -status if status < 0 else "with code %d" % status
        end = "; its last words: " + last[-1] if last else ""
        return {
            "rank": None,
            "local_rank": None,
            "at_s": time.time(),
            "code": None if status < 0 else status or 1,
            "signal": -status if status < 0 else None,
            "lines": [*last, "the launcher ended %s before its ranks did%s" % (how, end)],
        }

    def stop(self, grace_s: float) -> None:
        """Sends SIGTERM to the ranks' parents, which pass it on once; after the grace, at most, kills what is left."""
        parents = self._parents()
        targets = [pid for pid, _ in parents] or [child.pid for child in self._children if child.poll() is None]
        for pid in targets:
            send_signal(pid, signal.SIGTERM)
        until = time.monotonic() + grace_s
        while time.monotonic() < until and (self._parents() if parents else not self.has_launcher_ended()):
            reap(child.pid for child in self._children)
            time.sleep(POLL_S)
        for pid in of_job(self._spec["job"], os.getpid()):
            send_signal(pid, signal.SIGKILL)

    def wait_for_launcher(self, timeout_s: float) -> None:
        """Waits until what we started, and what that left in the background, has ended; at most for this time."""
        until = time.monotonic() + timeout_s
        while not self._is_all_over() and time.monotonic() < until:
            time.sleep(POLL_S)

    def _is_all_over(self) -> bool:
        if any(child.poll() is None for child in self._children):
            return False
        return not self._is_mpi or not of_job(self._spec["job"], os.getpid())

    def say(self, text: str) -> None:
        """Writes a line of ours into the ranks' output."""
        self._log.write("-", text.encode())

    def drain(self, timeout_s: float) -> None:
        """Waits until all output is in the log, at most for this time."""
        if self.receiver is not None:
            self.receiver.take_waiting()  # its thread may not know yet of a rank that ended at once
        self._output.drain(timeout_s)

    def _with_rights(self, may_sudo: str) -> list[str]:
        return [sys.executable, "-IS", str(self._program), "become", may_sudo, "--"]

    def _parent(self, path: Path) -> tuple[int, int]:
        """The process that runs a rank, by its number on this node. Raises OSError, ValueError."""
        process = rank_parent(path, self._user.pw_uid)
        if self._containers is None:
            return process
        return seen_from_here(process, of_job(self._spec["job"], os.getpid()))

    def _parents(self) -> list[tuple[int, int]]:
        """The parents of ranks that run."""
        found = []
        for path in self._folder.glob("*.pid"):
            try:
                pid, start = self._parent(path)
            except (OSError, ValueError):
                continue
            if is_alive((pid, start)) and pid in of_job(self._spec["job"], os.getpid()):
                found.append((pid, start))
        return found

    def _gone_parents(self) -> list[str]:
        """The ranks, by number, whose parents have ended."""
        found = []
        for path in self._folder.glob("*.pid"):
            try:
                if not is_alive(self._parent(path)):
                    found.append(path.stem)
            except (OSError, ValueError):
                continue
        return found

    def _vanished(self, reported: set[str], gone: list[str]) -> list[dict[str, Any]]:
        """Ranks whose parents have ended without a word, as do those that mpirun kills once another rank has failed."""
        first = launch.first_rank(self._spec, self._node_rank)
        return [
            {
                "rank": int(rank),
                "local_rank": int(rank) - first,
                "at_s": time.time(),
                "code": None,
                "signal": int(signal.SIGKILL),
                "lines": [],
                "is_vanished": True,
            }
            for rank in gone
            if rank not in reported and RANK_FILE.fullmatch(rank)
        ]

    def _environment(self) -> dict[str, str]:
        found = job_environment(self._layout, self._spec, self._node_rank)
        if self._is_mpi:
            found.update(launchers.mpi_variables(str(self._layout.folder(self._spec["job"]))))
        return found if self._has_own_streams else {**found, OUTPUT_VARIABLE: str(self._socket)}


def refusal_argv(why: str) -> list[str]:
    """The argv of a process that says, in the job's output, why something cannot be started, and fails."""
    return ["sh", "-c", 'printf "clusterctl: %s\n" "$1"; exit 1', "sh", why]
