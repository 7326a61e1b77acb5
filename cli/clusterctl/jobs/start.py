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
from clusterctl.jobs.spec import JobRequest, make_spec, problems
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
        said = self._heard(self.nodes.ask(self.request.nodes, "probe", self.request.name))
        found = problems(self.request, said)
        if found:
            raise ConfigError(f"{self.request.name} cannot start, nothing was started", problems=found, hint=AGAIN)
        size = {"files": len(self.snapshot.files), "bytes": self.snapshot.size_bytes}
        return make_spec(self.request, said, size)

    def begin(self) -> dict[str, Any]:
        """The spec of the job that is under way now. Raises ClusterctlError; then nothing of it is left."""
        spec = self.planned()
        held: list[InventoryNode] = []
        try:
            self._hold(held)
            spec = self._put(spec)
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

    def _put(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The files to all nodes side by side."""
        with tempfile.TemporaryFile() as archive, tempfile.TemporaryFile() as payload:
            digest = write_archive(self.snapshot, archive)
            sent = archive.tell()
            spec = {**spec, "snapshot": {**spec["snapshot"], "sha256": digest}}
            header = {
                "spec": spec,
                "secrets": dict(self.secrets),
                "key": secrets.token_hex(32),
                "snapshot_bytes": sent,
            }
            payload.write(json.dumps(header).encode() + b"\n")
            archive.seek(0)
            _append(payload, archive)
            payload.seek(0)
            files = count(len(self.snapshot.files), "file")
            self.tell(
                f"{self.request.name}: {files} ({thousands(sent)} bytes) to {count(len(self.request.nodes), 'node')}"
            )
            self._check(
                self.nodes.ask(self.request.nodes, "prepare", self.request.name, stdin=payload, timeout_s=PREPARE_S)
            )
        return spec

    def _heard(self, answers: Mapping[int, Answer]) -> dict[int, Mapping[str, Any]]:
        self._check(answers)
        return {slot: answer.words for slot, answer in answers.items()}

    def _check(self, answers: Mapping[int, Answer]) -> None:
        """Raises NotReached, ClusterctlError."""
        refuse_errors(list(answers.values()), f"{self.request.name} was not started")


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
