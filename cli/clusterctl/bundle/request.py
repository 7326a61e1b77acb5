"""`clusterctl bundle`: collects what is known of a cluster and a job, and packs it without secrets."""

from __future__ import annotations

import io
import json
import os
import platform
import shlex
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any  # JSON

from clusterctl_infra.errors import ClusterctlError, NothingMatched, SomeNodesFailed, UsageError
from clusterctl_infra.outputs import Inventory, inventory_to_json
from clusterctl_infra.version import VERSION

from clusterctl.bundle.secrets_out import secret_values, without_secrets
from clusterctl.home import Home, home_directory
from clusterctl.jobs.job_state import JobState
from clusterctl.jobs.kept_logs import KeptJob, keep_job, kept_job
from clusterctl.jobs.known import job_nodes, known_jobs, members_of
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.shown import state_json
from clusterctl.options import chosen_cluster
from clusterctl.output import Output
from clusterctl.ssh.command import Command
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.results import outcome
from clusterctl.system.disk_space import shown
from clusterctl.text.quantities import count, thousands

LOOK_S = 30.0
FILE_BYTES = 64 * 1024 * 1024
"""The most to take from the end of each of the job's files; a node keeps no more output than this."""
LOOK = """\
part() { echo; echo "== $*"; timeout 8 "$@" 2>&1 | tail -c 150000; }
part cat /etc/clusterctl/status.json; part cat /etc/clusterctl/node.json; part uname -a; part cat /etc/os-release
part uptime; part free -m; part df -h; part python3 --version; part nvidia-smi; part ls /run/clusterctl/jobs
part sudo -n dmesg -T; part systemctl --failed --no-pager
part sudo -n journalctl --no-pager -n 500 -u 'clusterctl*'; part tail -c 150000 /var/log/clusterctl.log
true
"""
"""A shell script that prints what a colleague would ask for first."""


@dataclass(frozen=True, kw_only=True)
class BundleRequest:
    """The flags of `clusterctl bundle`, parsed."""

    cluster: str | None
    job: str | None
    target: Path | None
    most_bytes: int
    """The limit for the job's files, before compression; files beyond it are left out."""
    connect_timeout_s: float


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One file of the archive."""

    name: str
    content: bytes


@dataclass(kw_only=True)
class Collected:
    """What goes into the archive, while it is collected."""

    cluster: str
    kept: KeptJob | None = None
    kept_files: list[Path] = field(default_factory=list)
    """The kept job's files that go into the archive."""
    entries: list[Entry] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def carry_out(request: BundleRequest, output: Output, health: Callable[[Inventory], Any]) -> int:
    """Writes the archive, prints its path, and returns 0, or 4 if anything is missing in it.

    `health` runs a sweep and gives its JSON. Raises ClusterctlError if nothing is known, UsageError for a target
    that cannot be a file, and OSError.
    """
    if request.target is not None:
        refuse_target(request.target)
    found = _collected(request, health)
    target = request.target or Path(f"bundle-{found.cluster}-{datetime.now(UTC):%m%d-%H%M%S}.tar.gz")
    if found.kept is not None:
        found.secrets += secret_values(found.kept.state.spec)
        found.kept_files = kept_files(found.kept, request.most_bytes, found.errors)
    found.entries += [_json("versions.json", _versions()), _json("not-there.json", found.errors)]
    size = _write(target, found)
    for error in found.errors:
        output.note(error)
    output.note("what looks like a secret is replaced by ***; look through it before you send it")
    files = count(len(found.entries) + len(found.kept_files), "file")
    output.note(f"{thousands(size)} bytes, {files}")
    output.data(str(target))
    return SomeNodesFailed.exit_code if found.errors else 0


def refuse_target(target: Path) -> None:
    """Raises UsageError if no file can be at this path; called before anything is collected, which takes a while."""
    if target.is_dir():
        inside = shlex.quote(str(target / "bundle.tar.gz"))
        raise UsageError(
            f"--output {target} is a folder: write a file's name", hint=f"clusterctl bundle --output {inside}"
        )
    if not target.parent.is_dir():
        raise UsageError(
            f"--output {target}: there is no folder {target.parent}", hint=f"mkdir -p {shlex.quote(str(target.parent))}"
        )


def _collected(request: BundleRequest, health: Callable[[Inventory], Any]) -> Collected:
    """All that is known of the cluster and the job. Raises ClusterctlError if nothing is."""
    home = home_directory(os.environ)
    kept = None if request.job is None else kept_job(home, request.cluster, request.job)
    try:
        inventory = chosen_cluster(request.cluster)
    except ClusterctlError as e:
        if kept is None:
            raise
        return Collected(cluster=str(kept.state.spec["cluster"]), kept=kept, errors=[str(e)])
    found = Collected(cluster=inventory.cluster, kept=kept)
    nodes = job_nodes(inventory, connect_timeout_s=request.connect_timeout_s)
    jobs = _jobs(nodes, found.errors)
    if request.job is not None:
        found.kept = _fetched(request.job, jobs, nodes, home, found.errors) or kept
        if found.kept is None:
            where = f"on {inventory.cluster}, and none is kept here"
            raise NothingMatched(f"no job {request.job!r} {where}", hint="clusterctl jobs")
    found.secrets += [value for job in jobs for value in secret_values(job.spec)]
    found.entries += [
        _json("cluster.json", inventory_to_json(inventory)),
        _json("jobs.json", [state_json(job) for job in jobs]),
        *_looks(nodes, found.errors),
        _json("sweep.json", _swept(inventory, health, found.errors)),
    ]
    return found


def _versions() -> Mapping[str, str]:
    return {
        "clusterctl": VERSION,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _jobs(nodes: JobNodes, errors: list[str]) -> list[JobState]:
    try:
        known = known_jobs(nodes)
    except ClusterctlError as e:
        errors.append(str(e))
        return []
    errors += [answer.error_line for answer in known.unheard]
    return list(known.jobs)


def _fetched(name: str, jobs: list[JobState], nodes: JobNodes, home: Home, errors: list[str]) -> KeptJob | None:
    """Fetches the job's files as they are now, and keeps them on this computer; None if no node knows the job."""
    for job in jobs:
        if job.name == name:
            there = [node for node in members_of(job, nodes.inventory) if node.slot in job.by_slot]
            errors += [each.summary for each in keep_job(job, nodes, there, home) if each.error is not None]
            return kept_job(home, nodes.inventory.cluster, name)
    return None


def _looks(nodes: JobNodes, errors: list[str]) -> list[Entry]:
    results = run_on_nodes(
        nodes.inventory,
        nodes.inventory.nodes,
        Command(line=LOOK, timeout_s=LOOK_S),
        keys=nodes.keys,
        deadlines=nodes.deadlines,
        pool=nodes.pool,
    )
    for result in results.values():
        if not result.is_ok:
            why = outcome(result) if result.failure is None else result.failure.message_under(result.name)
            errors.append(f"{result.name}: {why}")
    return [Entry(name=f"nodes/{each.name}.txt", content=each.stdout + each.stderr) for each in results.values()]


def _swept(inventory: Inventory, health: Callable[[Inventory], Any], errors: list[str]) -> Any:
    try:
        return health(inventory)
    except ClusterctlError as e:
        errors.append(f"sweep: {e}")
        return None


def _json(name: str, value: Any) -> Entry:
    return Entry(name=name, content=json.dumps(value, indent=1).encode())


def _write(target: Path, found: Collected) -> int:
    """Writes the archive and returns its size in bytes. It is there whole, or not at all. Raises OSError."""
    fresh, path = tempfile.mkstemp(dir=target.parent, prefix=".bundle-")  # only its owner may read it
    try:
        with os.fdopen(fresh, "wb") as stream, tarfile.open(fileobj=stream, mode="w:gz", compresslevel=6) as tar:
            for entry in (*found.entries, *(() if found.kept is None else _kept_entries(found.kept, found.kept_files))):
                row = tarfile.TarInfo(f"{target.name.removesuffix('.tar.gz')}/{entry.name}")
                content = without_secrets(entry.content, found.secrets)
                row.size, row.mode = len(content), 0o600
                tar.addfile(row, io.BytesIO(content))
        os.replace(path, target)
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise
    return target.stat().st_size


def kept_files(kept: KeptJob, most_bytes: int, errors: list[str]) -> list[Path]:
    """The job's files that fit into `most_bytes` together; a sentence about those left out is appended to `errors`.

    Small files come first: they say how the job ended, and so one node's large file does not crowd out other nodes'.
    """
    files = [path for path in kept.folder.rglob("*") if path.is_file() and not path.is_symlink()]
    taken, left_bytes = [], most_bytes
    for size_bytes, path in sorted((min(path.stat().st_size, FILE_BYTES), path) for path in files):
        if size_bytes > left_bytes:
            break
        left_bytes -= size_bytes
        taken.append(path)
    if len(taken) < len(files):
        left_out = count(len(files) - len(taken), "file")
        errors.append(
            f"{left_out} of {kept.state.name} left out: the limit is {shown(most_bytes)}; --limit SIZE raises it"
        )
    return sorted(taken)


def _kept_entries(kept: KeptJob, files: Sequence[Path]) -> Iterator[Entry]:
    for path in files:
        place = path.relative_to(kept.folder).as_posix()
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - FILE_BYTES))
            yield Entry(name=f"job-{kept.state.name}/{place}", content=stream.read(FILE_BYTES))
