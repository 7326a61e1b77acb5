"""What comes before a job's start on a node: what the node has to say, the job's files, and taking all of it back."""

from __future__ import annotations

import os
import pkgutil
import pwd
import shutil
import subprocess
import tarfile
import time
from pathlib import Path
from typing import IO, Any, Callable, Iterable, Iterator, Mapping

from clusterctl.on_node.job import job_containers, judge, launch, launchers, lease, shared_storage
from clusterctl.on_node.job.container import present_engine
from clusterctl.on_node.job.events import note_event
from clusterctl.on_node.job.layout import Layout, read_json, read_state, write_json
from clusterctl.on_node.job.supervise import boot_id
from clusterctl.on_node.job.warned import is_reclaimed

PORTS = range(28000, 29000)
"""The ports of jobs: between the start barrier's and those that Linux gives to outgoing connections."""
CHUNK_BYTES = 256 * 1024
RENEW_S = 5.0
NVIDIA_SMI_S = 20
FOLDERS_KEPT = 20
LISTEN = "0A"
PROGRAMS = "programs"
"""A folder beside the jobs' folders, which is no job's."""


def node_facts(layout: Layout, job: str, program: str = "") -> dict[str, Any]:
    """What a job has to know of this node before it is started; `program` is a path that it needs here, if any."""
    facts = read_json(layout.node_file)
    holders = lease.holders(layout)
    return {
        "slot": facts["slot"],
        "cluster_id": facts["cluster_id"],
        "generation": facts["generation"],
        "gpus": gpus(int(facts["gpus_per_node"])),
        "phase": _phase(layout),
        "shared": shared_storage.shared_mount(layout.root, facts),
        "mounts": [_mount_words(mount) for mount in facts.get("mounts") or []],
        "holders": holders,
        "engine": present_engine(),
        "is_reclaimed": is_reclaimed(layout.root, time.time()),
        "is_name_taken": layout.folder(job).exists(),
        "missing_program": missing_program(layout, program),
        "ports_in_use": sorted({*ports_in_use(layout.root), *ports_of_jobs(layout, holders)}),
        "free_bytes": shutil.disk_usage(_existing(layout.jobs)).free,
    }


def _mount_words(mount: dict[str, Any]) -> dict[str, Any]:
    return {key: mount[key] for key in ("path", "kind", "source", "writable")}


def missing_program(layout: Layout, program: str) -> str | None:
    """`program` if nothing is there; None if it is, or is on shared storage, where root may see less than the user.

    Raises ValueError where the path does not answer.
    """
    if not program or any(program.startswith(mount.rstrip("/") + "/") for mount in job_containers.shared_paths(layout)):
        return None
    return None if shared_storage.present_paths((program,)) else program


def receive(layout: Layout, job: str, header: dict[str, Any], stream: IO[bytes], program: Path) -> None:
    """Puts the job's files in place; what breaks off leaves none. Raises ValueError, OSError, tarfile.TarError."""
    layout.folder(job).mkdir(parents=True)  # where there is one already it is another job's, and stays
    try:
        _put(layout, job, header, stream, program)
    except BaseException:
        _remove(layout, job)
        raise


def discard(layout: Layout, job: str) -> None:
    """Takes back what was prepared for a job that does not start; nothing where it was started."""
    if lease.is_kept(layout, job):
        return
    if _is_unstarted(layout, job):
        job_containers.remove(layout, job)  # of a setup command, or of pip, whose connection broke off
        _remove(layout, job)
    lease.release(layout, job)


def remove_old(layout: Layout, but: str) -> None:
    """Removes the oldest jobs that have ended, where there are too many; and preparations that broke off.

    A folder without a state is one that is being prepared, if its job has the node, or was given up.
    """
    ended = []
    held = [holder["job"] for holder in lease.holders(layout)]
    for path in layout.jobs.iterdir():
        if path.name in (but, PROGRAMS, *held):
            continue
        try:
            state = read_state(layout, path.name)
        except FileNotFoundError:
            _remove(layout, path.name)
            continue
        except (OSError, ValueError):
            continue
        if state["state"] in judge.FINAL:
            ended.append((float(state["since_s"]), path))
    for _, path in sorted(ended)[: max(0, len(ended) - FOLDERS_KEPT)]:
        layout.spare_state(path.name).unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)


def ports_in_use(root: Path) -> list[int]:
    """The ports in `PORTS` on which somebody listens."""
    found = set()
    for name in ("tcp", "tcp6"):
        try:
            lines = (root / "proc/net" / name).read_text().splitlines()[1:]
        except OSError:
            continue  # there is none without IPv6
        found |= {int(line.split()[1].rpartition(":")[2], 16) for line in lines if line.split()[3] == LISTEN}
    return sorted(port for port in found if port in PORTS)


def ports_of_jobs(layout: Layout, holders: Iterable[Mapping[str, Any]]) -> set[int]:
    """The ports that other jobs here were given, though nothing may listen on them yet."""
    found: set[int] = set()
    for holder in holders:
        found |= set(holder.get("ports") or ())
        try:
            spec = read_json(layout.spec(holder["job"]))
            found |= {int(port) for port in launch.ports(spec)}
        except (OSError, ValueError, LookupError, TypeError):
            continue  # it is being prepared
    return found


def paths_to_give(folder: Path) -> Iterator[str]:
    """Everything in the folder and then the folder itself, each before what it lies in.

    Whoever has a folder can put links into it; so nothing in it is left to do once it is given away.
    """
    for base, folders, files in os.walk(folder, topdown=False):
        for name in [*folders, *files]:
            yield os.path.join(base, name)
    yield str(folder)


def _put(layout: Layout, job: str, header: dict[str, Any], stream: IO[bytes], program: Path) -> None:
    spec = header["spec"]
    user = pwd.getpwnam(spec["user"])
    folder = layout.folder(job)
    renew = _renewal(layout, job)
    layout.jobs.chmod(0o755)
    _close(folder, user)
    shared_storage.make_folder(spec)
    if spec.get("image_id"):  # its containers get the storage, and an engine would wait for a server that is away
        shared_storage.present_paths(job_containers.shared_paths(layout))
    for own in (layout.code(job), layout.work(job), layout.attempt(job, spec["attempt"])):
        own.mkdir()
    archive = folder / "code.tar.gz"
    _copy(stream, archive, int(header["snapshot_bytes"]), renew)
    _unpack(archive, layout.code(job), renew)
    archive.unlink()
    layout.ranks(job, spec["attempt"]).mkdir()
    for theirs in (layout.code(job), layout.work(job), layout.ranks(job, spec["attempt"])):
        _give(theirs, user, renew)
    _write_files(folder, spec, program)
    _write_private(layout.key(job), header["key"].encode(), None)
    _write_secrets(layout.secrets(job), header["secrets"], user)
    write_json(layout.spec(job), spec)
    facts = read_json(layout.node_file)
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
    note_event(layout, job, judge.PREPARING, attempt=spec["attempt"], by=spec["by"])


def _write_files(folder: Path, spec: dict[str, Any], program: Path) -> None:
    """Writes what the job's launcher reads or runs; the job cannot change it."""
    jax_main = (pkgutil.get_data(launchers.__name__, launchers.JAX_FILE) or b"").decode()
    for name, text in launchers.files(spec, str(program), jax_main).items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755 if name == launchers.AGENT_FILE else 0o644)


def gpus(declared: int) -> int:
    """How many GPUs the driver counts; where there is no driver to ask, how many the plan says."""
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


def _is_unstarted(layout: Layout, job: str) -> bool:
    try:
        return bool(read_state(layout, job)["state"] == judge.PREPARING)
    except FileNotFoundError:
        return True
    except (OSError, ValueError, LookupError):
        return False


def _remove(layout: Layout, job: str) -> None:
    """Removes what `receive` has put there, however far it came."""
    shutil.rmtree(layout.secrets(job), ignore_errors=True)
    layout.key(job).unlink(missing_ok=True)
    layout.spare_state(job).unlink(missing_ok=True)
    shutil.rmtree(layout.folder(job), ignore_errors=True)


def _renewal(layout: Layout, job: str) -> Callable[[], None]:
    """A function to call as often as one likes: it keeps the node for the job while the job is prepared."""
    renewed_s: float | None = None

    def renew() -> None:
        nonlocal renewed_s
        now_s = time.monotonic()
        if renewed_s is None or now_s - renewed_s > RENEW_S:
            renewed_s = now_s
            if not lease.renew(layout, job):
                raise ValueError("%s has lost its lease on the node" % job)

    return renew


def _copy(stream: IO[bytes], path: Path, left: int, renew: Callable[[], None]) -> None:
    with path.open("wb") as file:
        while left:
            chunk = stream.read(min(left, CHUNK_BYTES))
            if not chunk:
                raise ValueError("the snapshot ended %d bytes too early" % left)
            file.write(chunk)
            left -= len(chunk)
            renew()


def _unpack(archive: Path, folder: Path, renew: Callable[[], None]) -> None:
    """Unpacks. Raises ValueError for a name that leads out of the folder, by itself or by a link that came before.

    A link itself may lead anywhere, as to data on the node's disk: nothing is written through it, and what the job
    reads through it, it reads as its own user.
    """
    links: set[Path] = set()
    with tarfile.open(archive, "r:gz") as tar:
        # Else Python 3.14 refuses such links, and 3.12 warns of that (PEP 706, read 2026-11-26).
        tar.extraction_filter = lambda member, _: member
        for member in tar:
            path = Path(member.name)
            is_inside = not path.is_absolute() and ".." not in path.parts and links.isdisjoint((path, *path.parents))
            if not is_inside or not (member.isreg() or member.issym()):
                raise ValueError("the snapshot holds %r" % member.name)
            if member.issym():
                links.add(path)
            tar.extract(member, folder)
            renew()


def _give(folder: Path, user: pwd.struct_passwd, renew: Callable[[], None]) -> None:
    """Gives the folder and all in it to the login user."""
    if os.getuid() != 0:
        return
    for path in paths_to_give(folder):
        os.lchown(path, user.pw_uid, user.pw_gid)
        renew()


def _close(folder: Path, user: pwd.struct_passwd) -> None:
    """Lets only root and the login user look into it: code, output and environment are nobody else's business."""
    if os.getuid() == 0:
        os.chown(folder, 0, user.pw_gid)
    folder.chmod(0o750)


def _write_secrets(folder: Path, secrets: dict[str, str], user: pwd.struct_passwd) -> None:
    """Writes the secrets for the user, and gives the folder away last: whoever has it can put links into it."""
    for name, value in secrets.items():
        _write_private(folder / name, value.encode(), user)
    if secrets and os.getuid() == 0:
        os.lchown(folder, user.pw_uid, user.pw_gid)


def _write_private(path: Path, content: bytes, user: pwd.struct_passwd | None) -> None:
    """Writes a new file with mode 0600, in a folder that only its owner may look into."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "wb") as stream:
        stream.write(content)
        if user is not None and os.getuid() == 0:
            os.fchown(stream.fileno(), user.pw_uid, user.pw_gid)


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
