"""What comes before a job's start on a node: what the node has to say, the job's files, and taking all of it back."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tarfile
import time
from pathlib import Path
from typing import IO, Any

from clusterctl.on_node.job import judge, launch, lease
from clusterctl.on_node.job.layout import Layout, read_json, write_json
from clusterctl.on_node.job.supervise import boot_id

PORTS = range(28000, 29000)
"""Of jobs: between the start barrier's and those that Linux gives to outgoing connections."""
CHUNK_BYTES = 256 * 1024
RENEW_S = 5.0
NVIDIA_SMI_S = 20
FOLDERS_KEPT = 20
LISTEN = "0A"


def probe(layout: Layout, job: str) -> dict[str, Any]:
    """What a job has to know of this node before it is started."""
    facts = read_json(layout.root / "etc/clusterctl/node.json")
    return {
        "slot": facts["slot"],
        "cluster_id": facts["cluster_id"],
        "generation": facts["generation"],
        "gpus": _gpus(int(facts["gpus_per_node"])),
        "phase": _phase(layout),
        "holder": lease.holder(layout),
        "is_name_taken": layout.folder(job).exists(),
        "ports_in_use": ports_in_use(layout.root),
        "free_bytes": shutil.disk_usage(_existing(layout.jobs)).free,
    }


def receive(layout: Layout, job: str, header: dict[str, Any], stream: IO[bytes]) -> None:
    """Puts the job's files in place. Raises ValueError, OSError, tarfile.TarError."""
    spec = header["spec"]
    user = pwd.getpwnam(spec["user"])
    folder = layout.folder(job)
    folder.mkdir(parents=True)
    layout.jobs.chmod(0o755)
    for own in (layout.code(job), layout.work(job), layout.attempt(job, spec["attempt"])):
        own.mkdir()
    archive = folder / "code.tar.gz"
    _copy(layout, job, stream, archive, int(header["snapshot_bytes"]))
    _unpack(archive, layout.code(job))
    archive.unlink()
    layout.ranks(job, spec["attempt"]).mkdir()
    for theirs in (layout.code(job), layout.work(job), layout.ranks(job, spec["attempt"])):
        _give(theirs, user)
    (folder / "hostfile").write_text(launch.hostfile(spec))
    _write_private(layout.key(job), header["key"].encode(), None)
    for name, value in header["secrets"].items():
        _write_private(layout.secrets(job) / name, value.encode(), user)
    write_json(layout.spec(job), spec)
    facts = read_json(layout.root / "etc/clusterctl/node.json")
    write_json(
        layout.state(job),
        {
            "job": job,
            "attempt": spec["attempt"],
            "slot": facts["slot"],
            "state": judge.PREPARING,
            "since_s": time.time(),
            "boot_id": boot_id(layout),
        },
    )


def discard(layout: Layout, job: str) -> None:
    """Takes back what was prepared for a job that does not start; nothing where it runs."""
    if lease.is_kept(layout, job):
        return
    found = lease.holder(layout)
    if found is None or found["job"] != job:
        return
    shutil.rmtree(layout.folder(job), ignore_errors=True)
    shutil.rmtree(layout.secrets(job), ignore_errors=True)
    try:
        layout.key(job).unlink()
    except FileNotFoundError:
        pass  # it had not come that far
    lease.release(layout, job)


def remove_old(layout: Layout, but: str) -> None:
    """The code and output of the oldest jobs that have ended, where there are too many."""
    ended = []
    for path in layout.jobs.iterdir():
        try:
            state = read_json(path / "state.json")
        except (OSError, ValueError):
            continue
        if state["state"] in judge.FINAL and path.name != but:
            ended.append((float(state["since_s"]), path))
    for _, path in sorted(ended)[: max(0, len(ended) - FOLDERS_KEPT)]:
        shutil.rmtree(path, ignore_errors=True)


def ports_in_use(root: Path) -> list[int]:
    """Of `PORTS`: those that somebody listens on."""
    found = set()
    for name in ("tcp", "tcp6"):
        try:
            lines = (root / "proc/net" / name).read_text().splitlines()[1:]
        except OSError:
            continue  # there is none without IPv6
        found |= {int(line.split()[1].rpartition(":")[2], 16) for line in lines if line.split()[3] == LISTEN}
    return sorted(port for port in found if port in PORTS)


def _gpus(declared: int) -> int:
    """As the driver counts them; as the plan says where there is no driver to ask."""
    if not declared or shutil.which("nvidia-smi") is None:
        return declared
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, timeout=NVIDIA_SMI_S)
    except (OSError, subprocess.TimeoutExpired):
        return declared
    return sum(line.startswith(b"GPU ") for line in done.stdout.splitlines()) if not done.returncode else declared


def _phase(layout: Layout) -> str:
    try:
        return str(read_json(layout.root / "etc/clusterctl/status.json")["phase"])
    except (OSError, ValueError, LookupError):
        return "unknown"


def _copy(layout: Layout, job: str, stream: IO[bytes], path: Path, left: int) -> None:
    renewed_s = time.monotonic()
    with path.open("wb") as file:
        while left:
            chunk = stream.read(min(left, CHUNK_BYTES))
            if not chunk:
                raise ValueError("the snapshot ended %d bytes too early" % left)
            file.write(chunk)
            left -= len(chunk)
            if time.monotonic() - renewed_s > RENEW_S:
                renewed_s = time.monotonic()
                lease.renew(layout, job)


def _unpack(archive: Path, folder: Path) -> None:
    """Raises ValueError for a name that leads out of the folder."""
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            if member.name.startswith("/") or ".." in Path(member.name).parts or not (member.isreg() or member.issym()):
                raise ValueError("the snapshot holds %r" % member.name)
            tar.extract(member, folder)


def _give(folder: Path, user: pwd.struct_passwd) -> None:
    """The folder and all in it belong to the login user."""
    if os.getuid() != 0:
        return
    os.chown(folder, user.pw_uid, user.pw_gid)
    for base, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            os.lchown(os.path.join(base, name), user.pw_uid, user.pw_gid)


def _write_private(path: Path, content: bytes, user: pwd.struct_passwd | None) -> None:
    """0600, in a folder that only its owner may look into."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "wb") as stream:
        stream.write(content)
    if user is not None and os.getuid() == 0:
        os.chown(path, user.pw_uid, user.pw_gid)
        os.chown(path.parent, user.pw_uid, user.pw_gid)


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
