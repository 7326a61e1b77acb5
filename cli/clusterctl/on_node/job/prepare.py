"""What comes before a job's start on a node: the job's files are put in place, or taken back."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import sys
import tarfile
import time
from pathlib import Path
from typing import IO, Any, Callable, Dict, Iterator

from clusterctl.on_node.job import judge, launchers, lease, shared_storage
from clusterctl.on_node.job.container import remove_job
from clusterctl.on_node.job.events import note_event
from clusterctl.on_node.job.layout import Layout, read_boot_id, read_json, read_state, write_json

CHUNK_BYTES = 256 * 1024
RENEW_S = 5.0
FOLDERS_KEPT = 20
PROGRAMS = "programs"
"""The folder of installed versions of this program, beside the jobs' folders."""


def answer_prepare(layout: Layout, job: str, program: Path) -> Dict[str, Any]:
    """The verb `prepare`: puts a job's files in place; reads a line of JSON and the snapshot behind it from stdin."""
    if not lease.renew(layout, job):
        raise ValueError("%s has lost its lease on the node" % job)
    os.umask(0o022)
    try:
        receive(layout, job, json.loads(sys.stdin.buffer.readline()), sys.stdin.buffer, program)
    except tarfile.TarError as e:
        raise ValueError("the snapshot cannot be unpacked: %s" % e) from e
    remove_old(layout, but=job)
    lease.renew(layout, job)
    return {}


def answer_discard(layout: Layout, job: str) -> Dict[str, Any]:
    """The verb `discard`: removes what is here of a job that was never started."""
    discard(layout, job)
    return {}


def receive(layout: Layout, job: str, header: dict[str, Any], stream: IO[bytes], program: Path) -> None:
    """Puts the job's files in place; leaves none if it breaks off. Raises ValueError, OSError, tarfile.TarError."""
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
        remove_job(layout, job)  # a setup command's or pip's, whose connection broke off
        _remove(layout, job)
    lease.release(layout, job)


def remove_old(layout: Layout, but: str) -> None:
    """Removes the oldest jobs that have ended, where there are too many; and preparations that broke off.

    A folder without a state is being prepared if its job holds the node; else its preparation was given up.
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
        _remove_spare(layout, path.name)
        shutil.rmtree(path, ignore_errors=True)


def paths_to_give(folder: Path) -> Iterator[str]:
    """Everything in the folder and then the folder itself, each before the folder that it is in.

    Whoever owns a folder can put links into it; so nothing in it is left to do once it is given away.
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
        shared_storage.present_paths(shared_storage.shared_paths(layout))
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
            "boot_id": read_boot_id(layout),
        },
    )
    note_event(layout, job, judge.PREPARING, attempt=spec["attempt"], by=spec["by"])


def _write_files(folder: Path, spec: dict[str, Any], program: Path) -> None:
    """Writes what the job's launcher reads or runs; the job cannot change it."""
    jax_main = Path(launchers.__file__).with_name(launchers.JAX_FILE).read_text()
    for name, text in launchers.files(spec, str(program), jax_main).items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755 if name == launchers.AGENT_FILE else 0o644)


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
    _remove_spare(layout, job)
    shutil.rmtree(layout.folder(job), ignore_errors=True)


def _remove_spare(layout: Layout, job: str) -> None:
    """Removes what was written on tmpfs because the disk took nothing."""
    for path in (layout.spare_state(job), layout.spare_cancel(job)):
        path.unlink(missing_ok=True)


def _renewal(layout: Layout, job: str) -> Callable[[], None]:
    """A function to call often: it renews the job's lease, at most every `RENEW_S`."""
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
    """Writes the secrets for the user, and gives the folder away last: its owner can put links into it."""
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
