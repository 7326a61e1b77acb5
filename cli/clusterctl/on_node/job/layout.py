"""Where a job's files lie on a node. What is below `/var/lib` outlives a reboot, what is below `/run` does not."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple


class Layout(NamedTuple):
    """Paths below `root`, which differs from `/` only in tests."""

    root: Path = Path("/")

    @property
    def jobs(self) -> Path:
        """A folder for each job that this node was ever part of."""
        return self.root / "var/lib/clusterctl/jobs"

    @property
    def lease(self) -> Path:
        """A folder with a file for each job that holds this node or some of its GPUs."""
        return self.root / "run/clusterctl/job-lease"

    @property
    def boot_id(self) -> Path:
        """Another text after each reboot; a container shares its host's, so the agent writes one of its own."""
        return self.root / "run/clusterctl/boot-id"

    @property
    def deadline(self) -> Path:
        """The agent's: cluster id, generation, Unix time at which this node ends."""
        return self.root / "var/lib/clusterctl/deadline"

    @property
    def last_stage(self) -> Path:
        """The guard's: `uptime` or `clock`, and the instant by it, 90 s after the node's end."""
        return self.root / "run/clusterctl/last-stage-at"

    @property
    def node_file(self) -> Path:
        """The agent's file with the node's own facts, such as its slot, its GPUs and its mounts."""
        return self.root / "etc/clusterctl/node.json"

    def in_use(self, job: str) -> Path:
        """A file while the job runs here, with its keeper's process in it; the idle rule counts it as use."""
        return self.root / "run/clusterctl/jobs" / job

    def key(self, job: str) -> Path:
        """The key by which the job's supervisors know each other; for root alone."""
        return self.root / "run/clusterctl/job-keys" / job

    def secrets(self, job: str) -> Path:
        """A folder with a file for each secret, for the login user alone; on tmpfs."""
        return self.root / "run/clusterctl/job-secrets" / job

    def folder(self, job: str) -> Path:
        """All that is kept of the job on this node."""
        return self.jobs / job

    def spec(self, job: str) -> Path:
        """The job's spec; the same on all of its nodes."""
        return self.folder(job) / "spec.json"

    def state(self, job: str) -> Path:
        """The job's state on this node; written by its supervisor."""
        return self.folder(job) / "state.json"

    def spare_state(self, job: str) -> Path:
        """Where the state is when the disk has no room for it; on tmpfs."""
        return self.root / "run/clusterctl/job-states" / ("%s.json" % job)

    def cancel(self, job: str) -> Path:
        """There once somebody wants the job cancelled."""
        return self.folder(job) / "cancel"

    def spare_cancel(self, job: str) -> Path:
        """There instead of `cancel` if the disk takes no file; on tmpfs."""
        return self.root / "run/clusterctl/job-states" / ("%s.cancel" % job)

    def restart(self, job: str) -> Path:
        """There once the workflow is to start this task again; the job was cancelled for that, or had ended by then."""
        return self.folder(job) / "restart"

    def events(self, job: str) -> Path:
        """What happened to the job here, a line of JSON for each event."""
        return self.folder(job) / "events.jsonl"

    def warning(self, job: str) -> Path:
        """There while a node of the job warns of its end: which one, when and why."""
        return self.folder(job) / "warning.json"

    def code(self, job: str) -> Path:
        """The folder that the job was started from, unpacked; the login user's."""
        return self.folder(job) / "code"

    def work(self, job: str) -> Path:
        """`CLUSTERCTL_JOB_DIR`: for what the job wants to keep; the login user's."""
        return self.folder(job) / "work"

    def tmp(self, job: str) -> Path:
        """The job's own /tmp, where it has one; gone when it has ended."""
        return self.folder(job) / "tmp"

    def resolv_conf(self, job: str) -> Path:
        """What a workflow's task has as /etc/resolv.conf, where its node's names are served to it."""
        return self.folder(job) / "resolv.conf"

    def attempt(self, job: str, attempt: int) -> Path:
        """The folder of one attempt: its output, and what its ranks write."""
        return self.folder(job) / ("attempt-%d" % attempt)

    def ranks(self, job: str, attempt: int) -> Path:
        """Where the ranks' parents write how each rank ended, and its log; the login user's."""
        return self.attempt(job, attempt) / "ranks"

    def output(self, job: str, attempt: int) -> Path:
        """The socket at which ranks that a launcher started on this node deliver their output."""
        return self.attempt(job, attempt) / "output.sock"


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file. Raises OSError, ValueError."""
    found = json.loads(path.read_bytes())
    if not isinstance(found, dict):
        raise ValueError("%s: not an object" % path)
    return found


def read_state(layout: Layout, job: str) -> dict[str, Any]:
    """How the job goes on this node, as its supervisor wrote it. Raises OSError, ValueError."""
    try:
        return read_json(layout.spare_state(job))
    except FileNotFoundError:
        return read_json(layout.state(job))


def read_boot_id(layout: Layout) -> str:
    """The id of this start of the node; empty where the agent wrote none."""
    try:
        return layout.boot_id.read_text().strip()
    except OSError:
        return ""


def write_state(layout: Layout, job: str, value: object) -> None:
    """Writes the state down, on tmpfs where the disk takes nothing. Raises OSError."""
    spare = layout.spare_state(job)
    try:
        write_json(layout.state(job), value)
        spare.unlink(missing_ok=True)
    except OSError:
        spare.parent.mkdir(parents=True, exist_ok=True)
        write_json(spare, value)


def mark_cancelled(layout: Layout, job: str) -> None:
    """Says that somebody wants the job cancelled. Raises OSError."""
    try:
        layout.cancel(job).touch()
    except OSError:
        spare = layout.spare_cancel(job)
        spare.parent.mkdir(parents=True, exist_ok=True)
        spare.touch()


def is_cancelled(layout: Layout, job: str) -> bool:
    """Whether somebody wants the job cancelled."""
    return layout.cancel(job).exists() or layout.spare_cancel(job).exists()


def write_json(path: Path, value: object, mode: int = 0o644) -> None:
    """Replaces the file at once: a reader sees the old one or the new one."""
    beside = path.with_name("%s.%d.new" % (path.name, os.getpid()))
    try:
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(file, "w") as stream:
            json.dump(value, stream)
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
