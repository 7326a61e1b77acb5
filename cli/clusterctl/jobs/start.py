"""Starts a job: asks its nodes, takes a lease on each, sends its files, makes it ready, starts it.

If one of these steps fails, nothing of the job is left on the nodes.
"""

from __future__ import annotations

import getpass
import json
import os
import secrets
import socket
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any  # JSON

from clusterctl_infra.errors import ConfigError
from clusterctl_infra.outputs import InventoryNode

from clusterctl.engine.jobs_here import note_job
from clusterctl.home import home_directory
from clusterctl.jobs.images import fetch_image
from clusterctl.jobs.node_answers import Answer, JobNodes, refuse_errors
from clusterctl.jobs.snapshot import Snapshot, write_archive
from clusterctl.jobs.spec import AUTO, JobRequest, held_by, in_use, make_spec, problems, program_on_nodes
from clusterctl.on_node.job.launch import ports
from clusterctl.on_node.job.launchers import ONE_EACH
from clusterctl.text.node_set import fold_numbers
from clusterctl.text.quantities import count, thousands

PREPARE_S = 600.0
READY_S = 1800.0
"""How long requirements and a setup command may take on a node."""
START_S = 90.0
"""Longer than a node tries to start the job (`keeper_service.START_WITHIN_S`), so that it can say why it did not."""
HINT = "clusterctl jobs"
CHUNK_BYTES = 1024 * 1024
WAIT_POLL_S = 2.0
MOST_TRIES = 5
"""How often a start is tried when other jobs, started at the same moment, were given its ports."""
CROWD = 4
"""With up to this many processes for each processor, all of them import torch within half a minute."""
GPU_BYTES = 8
"""Room in a header for the index of one GPU, which is not known before the nodes are held."""


class NodesInUse(ConfigError):
    """Other jobs hold nodes that this job needs. They will end, so waiting may help."""


class PortsTaken(ConfigError):
    """Another job was given a port of this job after the nodes were asked and before they were held."""


@dataclass(frozen=True, kw_only=True)
class JobStart:
    """Everything that is needed to start one job."""

    request: JobRequest
    nodes: JobNodes
    snapshot: Snapshot
    secrets: Mapping[str, str]
    registry_login: str = ""
    """USER:PASSWORD for the image's registry."""
    wait_s: float
    tell: Callable[[str], None]

    def planned(self) -> dict[str, Any]:
        """The job's spec, after asking all nodes; nothing is changed. Raises ClusterctlError, NodesInUse."""
        request = self.request
        answers = self.nodes.ask(request.inventory.nodes, "facts", request.name, program_on_nodes(request))
        facts = self._heard({node.slot: answers[node.slot] for node in request.nodes})
        # The cluster's other nodes are only asked whether they know its name, so it does not matter if one is away.
        named = [slot for slot, answer in answers.items() if answer.error is None and answer.words["is_name_taken"]]
        found = problems(request, facts, named=named)
        if found:
            hint = f"clusterctl status --cluster {request.inventory.cluster}"
            raise ConfigError(f"{request.name} cannot start, nothing was started", problems=found, hint=hint)
        if held := in_use(request, facts):
            raise NodesInUse(f"{request.name} cannot start, nothing was started", problems=held, hint=HINT)
        size = {"files": len(self.snapshot.files), "bytes": self.snapshot.size_bytes}
        return {**make_spec(request, facts, size), "started_s": time.time()}

    def begin(self) -> dict[str, Any]:
        """Starts the job and returns its spec. Raises ClusterctlError; then nothing of the job is left.

        While other jobs hold its nodes, it is tried again for up to `wait_s`.
        """
        until_s = time.monotonic() + self.wait_s
        shown: tuple[str, ...] = ()
        tries = 0
        while True:
            try:
                return self._begin_now()
            except PortsTaken:
                tries += 1
                if tries == MOST_TRIES:
                    raise
                continue
            except NodesInUse as e:
                if time.monotonic() > until_s:
                    raise
                if e.problems != shown:
                    shown = tuple(e.problems)
                    self.tell("\n  ".join((f"{self.request.name}: waiting", *shown)))
            time.sleep(WAIT_POLL_S)

    def _begin_now(self) -> dict[str, Any]:
        spec = self.planned()
        if note := without_gpus(self.request, spec["members"]):
            self.tell(note)
        ranks = sum(int(member["nproc"]) for member in spec["members"])
        is_rehearsal = self.request.inventory.rehearsal
        if note := crowded(ranks, is_rehearsal=is_rehearsal, processors=os.cpu_count() or 1):
            self.tell(f"{self.request.name}: {note}")
        if self.request.is_shared_wanted and spec["shared"] is None:
            name = self.request.name
            stays = "no shared storage: files in $CLUSTERCTL_JOB_DIR stay on each node, and are lost when it ends"
            self.tell(f"{name}: {stays}; clusterctl job cp {name} DIR fetches them")
        if self.request.image is not None:
            # Done before any node is held: it may take minutes, in which other jobs can use the nodes.
            spec = {**spec, "image_id": self._image_id(self.request.image)}
        with tempfile.TemporaryFile() as payload:
            # Also before that: packing a large folder takes time.
            header = self._write(spec, payload)
            held: list[InventoryNode] = []
            try:
                spec = self._hold(header["spec"], held)
                write_header(payload, {**header, "spec": spec})
                self._put(payload)
                self._make_ready()
                self._check(self.nodes.ask(self.request.nodes, "start", self.request.name, timeout_s=START_S))
            except BaseException:
                # Supervisors that began already would give up by themselves, once they have waited for the others.
                self.nodes.ask(held, "cancel", self.request.name)
                self.nodes.ask(held, "discard", self.request.name)
                raise
        note_job(self.request.name, self.request.inventory.cluster, home_directory(os.environ))
        return spec

    def _image_id(self, image: str) -> str:
        name, login = self.request.name, self.registry_login
        return fetch_image(image, self.nodes, self.request.nodes, name=name, tell=self.tell, login=login)

    def _hold(self, spec: dict[str, Any], held: list[InventoryNode]) -> dict[str, Any]:
        """Takes a lease on each node and returns the spec with the GPUs that the job got.

        Nodes that were taken are appended to `held`: the caller gives them back if the start fails. They are taken in
        ascending order, so of two jobs that want the same nodes one gets all of them, and the other none.
        Raises NodesInUse, PortsTaken, ClusterctlError.
        """
        wanted = "all" if self.request.gpus is None else str(self.request.gpus)
        own_ports = ",".join(map(str, ports(spec)))
        taken = {}
        for node in sorted(self.request.nodes, key=lambda node: node.slot):
            answers = self.nodes.ask((node,), "take", self.request.name, self.request.by, wanted, own_ports)
            self._check(answers)
            words = answers[node.slot].words
            if words["holders"]:
                problem = f"Node {node.slot} ({node.name}): {held_by(words['holders'])}"
                raise NodesInUse(f"{self.request.name}: nothing was started", problems=[problem], hint=HINT)
            if words.get("are_ports_taken"):
                raise PortsTaken(f"{self.request.name}: another job was given its ports meanwhile", hint=HINT)
            held.append(node)
            taken[node.slot] = words["gpus"]
        members = [{**member, "gpu_indices": taken[int(member["slot"])]} for member in spec["members"]]
        return {**spec, "members": members}

    def _write(self, spec: dict[str, Any], payload: IO[bytes]) -> dict[str, Any]:
        """Writes to `payload` what each node gets, a header and then the folder's archive, and returns the header.

        In `payload` the header is followed by blanks, as it becomes longer when the GPUs are known.
        """
        with tempfile.TemporaryFile() as archive:
            digest = write_archive(self.snapshot, archive)
            header = {
                "spec": {**spec, "snapshot": {**spec["snapshot"], "sha256": digest, "archive_bytes": archive.tell()}},
                "secrets": dict(self.secrets),
                "key": secrets.token_hex(32),
                "snapshot_bytes": archive.tell(),
            }
            room = sum(GPU_BYTES * (1 + int(member["gpus"])) for member in spec["members"])
            payload.write(json.dumps(header).encode() + b" " * room + b"\n")
            archive.seek(0)
            _append(payload, archive)
        return header

    def _put(self, payload: IO[bytes]) -> None:
        """Sends the payload to all nodes at the same time."""
        files, size = count(len(self.snapshot.files), "file"), thousands(payload.seek(0, os.SEEK_END))
        nodes = count(len(self.request.nodes), "node")
        payload.seek(0)
        self.tell(f"{self.request.name}: {files} ({size} bytes) to {nodes}")
        self._check(
            self.nodes.ask(self.request.nodes, "prepare", self.request.name, stdin=payload, timeout_s=PREPARE_S)
        )

    def _make_ready(self) -> None:
        """Has all nodes prepare the interpreter, the requirements and the setup command; tells which interpreter each
        has."""
        request = self.request
        if not (request.python or request.requirements or request.setup):
            return
        lock = request.lock or ""
        if request.requirements and request.lock is None:
            first = min(request.nodes, key=lambda node: node.rank)
            self.tell(f"{request.name}: resolving {request.requirements} on Node {first.slot} ({first.name})")
            answers = self.nodes.ask((first,), "lock", request.name, timeout_s=READY_S)
            self._check(answers)
            lock = str(answers[first.slot].words["lock"])
        with tempfile.TemporaryFile() as stream:
            stream.write(json.dumps({"lock": lock}).encode() + b"\n")
            stream.seek(0)
            ready = self._heard(self.nodes.ask(request.nodes, "ready", request.name, stdin=stream, timeout_s=READY_S))
        for (interpreter, version), slots in by_interpreter(ready).items():
            where = f"{'Node' if len(slots) == 1 else 'Nodes'} {fold_numbers(slots)}"
            self.tell(f"{request.name}: {interpreter} (Python {version}) on {where}")

    def _heard(self, answers: Mapping[int, Answer]) -> dict[int, Mapping[str, Any]]:
        self._check(answers)
        return {slot: answer.words for slot, answer in answers.items()}

    def _check(self, answers: Mapping[int, Answer]) -> None:
        """Raises NotReached, ClusterctlError."""
        refuse_errors(list(answers.values()), f"{self.request.name} was not started")


def started_by() -> str:
    """`ada@laptop (4711)`: the user, the computer and the process that start a job, as its nodes keep it."""
    try:
        person = getpass.getuser()
    except (KeyError, OSError, ImportError):
        person = "unknown"  # as in a container whose user has no name
    return f"{person}@{socket.gethostname()} ({os.getpid()})"


def by_interpreter(answers: Mapping[int, Mapping[str, Any]]) -> dict[tuple[str, str], list[int]]:
    """(interpreter, version) → the slots of the nodes that have it."""
    found: dict[tuple[str, str], list[int]] = {}
    for slot, words in answers.items():
        found.setdefault((str(words["interpreter"]), str(words["version"])), []).append(slot)
    return found


def write_header(payload: IO[bytes], header: Mapping[str, Any]) -> None:
    """Overwrites the first line of `payload` with the header as JSON, padded with blanks to the line's old length.

    Raises ValueError if the header is longer than that.
    """
    payload.seek(0)
    length = len(payload.readline()) - 1
    line = json.dumps(header).encode()
    if len(line) > length:
        raise ValueError(f"a header of {len(line)} bytes in a place of {length}")
    payload.seek(0)
    payload.write(line.ljust(length))


def without_gpus(request: JobRequest, members: Sequence[Mapping[str, Any]]) -> str:
    """A sentence naming the nodes that run one process because they have no GPUs; empty if there are none."""
    slots = [int(member["slot"]) for member in members if not member["gpus"]]
    if not slots or request.nproc != AUTO or request.launch.launcher in ONE_EACH:
        return ""
    return f"{'Node' if len(slots) == 1 else 'Nodes'} {fold_numbers(slots)}: no GPUs, so one process each (--nproc N)"


def crowded(ranks: int, *, is_rehearsal: bool, processors: int) -> str:
    """Why a rehearsed job with so many processes will start slowly, and what helps; empty if it will not. Pure."""
    if not is_rehearsal or ranks <= CROWD * processors:
        return ""
    shared = f"{ranks} processes share this computer's {count(processors, 'processor')}"
    return f"rehearsed: {shared}, which may take minutes to start them; --nproc 1 starts one on each node"


def _append(target: IO[bytes], source: IO[bytes]) -> None:
    while chunk := source.read(CHUNK_BYTES):
        target.write(chunk)
