"""Starts a job: asks its nodes, holds them, puts all of it there, begins. What fails before that leaves nothing."""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any  # JSON

from clusterctl_infra.errors import ClusterctlError, ConfigError, NotReached, UsageError
from clusterctl_infra.outputs import InventoryNode

from clusterctl.jobs.node_answers import Answer, JobNodes
from clusterctl.jobs.snapshot import Snapshot, write_archive
from clusterctl.jobs.spec import AUTO, JobRequest, make_spec, problems
from clusterctl.on_node.job.launchers import ONE_EACH
from clusterctl.text.node_set import fold_numbers
from clusterctl.text.quantities import count, thousands

PREPARE_S = 600.0
AGAIN = "clusterctl jobs"
CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class JobStart:
    """A job that is to be started."""

    request: JobRequest
    nodes: JobNodes
    snapshot: Snapshot
    secrets: Mapping[str, str]
    tell: Callable[[str], None]

    def planned(self) -> dict[str, Any]:
        """The spec, all nodes asked and nothing done. Raises ClusterctlError."""
        request = self.request
        answers = self.nodes.ask(request.inventory.nodes, "probe", request.name)
        said = self._heard({node.slot: answers[node.slot] for node in request.nodes})
        # Nodes beside the job are only asked whether they know its name; one that is away keeps nobody from starting.
        named = [slot for slot, answer in answers.items() if answer.error is None and answer.words["is_name_taken"]]
        found = problems(request, said, named=named)
        if found:
            raise ConfigError(f"{request.name} cannot start, nothing was started", problems=found, hint=AGAIN)
        size = {"files": len(self.snapshot.files), "bytes": self.snapshot.size_bytes}
        return make_spec(request, said, size)

    def begin(self) -> dict[str, Any]:
        """The spec of the job that is under way now. Raises ClusterctlError; then nothing of it is left."""
        spec = self.planned()
        if told := without_gpus(self.request, spec["members"]):
            self.tell(told)
        with tempfile.TemporaryFile() as payload:
            # Before any node is held: a large folder takes its time, and others may want the nodes.
            spec = self._write(spec, payload)
            held: list[InventoryNode] = []
            try:
                self._hold(held)
                self._put(payload)
                self._check(self.nodes.ask(self.request.nodes, "start", self.request.name))
            except BaseException:
                # Supervisors that began already give up by themselves: they wait for the others in vain.
                self.nodes.ask(held, "cancel", self.request.name)
                self.nodes.ask(held, "discard", self.request.name)
                raise
        return spec

    def _hold(self, held: list[InventoryNode]) -> None:
        """In ascending order: of two jobs that want the same nodes one gets all of them, and the other none."""
        for node in sorted(self.request.nodes, key=lambda node: node.slot):
            answers = self.nodes.ask((node,), "take", self.request.name, self.request.by)
            self._check(answers)
            holder = answers[node.slot].words["holder"]
            if holder is not None:
                raise UsageError(
                    f"Node {node.slot} ({node.name}) is in use by the job {holder['job']}, nothing was started",
                    hint=f"clusterctl job wait {holder['job']}",
                )
            held.append(node)

    def _write(self, spec: dict[str, Any], payload: IO[bytes]) -> dict[str, Any]:
        """What each node gets: a line of JSON, and the folder behind it; the spec with the folder's hash."""
        with tempfile.TemporaryFile() as archive:
            digest = write_archive(self.snapshot, archive)
            spec = {**spec, "snapshot": {**spec["snapshot"], "sha256": digest, "archive_bytes": archive.tell()}}
            header = {
                "spec": spec,
                "secrets": dict(self.secrets),
                "key": secrets.token_hex(32),
                "snapshot_bytes": archive.tell(),
            }
            payload.write(json.dumps(header).encode() + b"\n")
            archive.seek(0)
            _append(payload, archive)
        return spec

    def _put(self, payload: IO[bytes]) -> None:
        """The files to all nodes side by side."""
        files, size = count(len(self.snapshot.files), "file"), thousands(payload.tell())
        nodes = count(len(self.request.nodes), "node")
        payload.seek(0)
        self.tell(f"{self.request.name}: {files} ({size} bytes) to {nodes}")
        self._check(
            self.nodes.ask(self.request.nodes, "prepare", self.request.name, stdin=payload, timeout_s=PREPARE_S)
        )

    def _heard(self, answers: Mapping[int, Answer]) -> dict[int, Mapping[str, Any]]:
        self._check(answers)
        return {slot: answer.words for slot, answer in answers.items()}

    def _check(self, answers: Mapping[int, Answer]) -> None:
        """Raises NotReached, ClusterctlError."""
        refuse_errors(list(answers.values()), f"{self.request.name} was not started")


def without_gpus(request: JobRequest, members: Sequence[Mapping[str, Any]]) -> str:
    """Which nodes run one process though one for each GPU was meant; empty where none does."""
    slots = [int(member["slot"]) for member in members if not member["gpus"]]
    if not slots or request.nproc != AUTO or request.launch.launcher in ONE_EACH:
        return ""
    return f"{'Node' if len(slots) == 1 else 'Nodes'} {fold_numbers(slots)}: no GPUs, so one process each (--nproc N)"


def refuse_errors(answers: Sequence[Answer], what: str) -> None:
    """Raises NotReached where a node was not reached, ClusterctlError where one could not do it."""
    failed = [answer for answer in answers if answer.error is not None]
    if not failed:
        return
    told = "; ".join(answer.told for answer in failed[:3])
    more = f"; and {len(failed) - 3} more" if len(failed) > 3 else ""
    kind = ClusterctlError if all(answer.is_reached for answer in failed) else NotReached
    raise kind(f"{what}: {told}{more}", hint="clusterctl status")


def _append(target: IO[bytes], source: IO[bytes]) -> None:
    while chunk := source.read(CHUNK_BYTES):
        target.write(chunk)
