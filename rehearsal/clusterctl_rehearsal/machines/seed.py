"""What a machine's disk holds before its first boot: cloud-init's seed and extra files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from clusterctl_rehearsal.machines.driver import MachineError, MachineFile, MachineSpec

SEED_FOLDER = "/var/lib/cloud/seed/nocloud"
_MAX_LINKS = 40


def seed_files(spec: MachineSpec) -> Mapping[str, MachineFile]:
    """Every file placed before boot, by absolute path: user-data byte for byte, and meta-data."""
    meta_data = f"instance-id: {spec.instance_id}\nlocal-hostname: {spec.node}\n"
    return {
        f"{SEED_FOLDER}/user-data": MachineFile(content=spec.user_data, mode=0o600),
        f"{SEED_FOLDER}/meta-data": MachineFile(content=meta_data.encode(), mode=0o644),
        "/etc/hostname": MachineFile(content=f"{spec.node}\n".encode()),
        **spec.files,
    }


def place(upper: Path, lower: Path, files: Mapping[str, MachineFile]) -> None:
    """Write files into the upper layer of an overlay over `lower`.

    A folder made in the upper layer covers the attributes of the one below, so they are
    copied. Links to folders in `lower` (/bin -> usr/bin) are followed: a folder made in a
    link's place would hide everything behind it.
    """
    for path, file in files.items():
        inside = resolve(lower, path)
        for level in reversed(list(_parents(inside))):
            _make_folder(upper / level, lower / level)
        target = upper / inside
        target.write_bytes(file.content)
        target.chmod(file.mode)


def resolve(lower: Path, path: str) -> PurePosixPath:
    """Where an absolute path leads in `lower`, relative to it, with links to folders followed. Raises MachineError."""
    pending = list(PurePosixPath(path).parts[1:])
    if not path.startswith("/") or not pending or ".." in pending:
        raise MachineError(f"{path!r} is not an absolute path of a file")
    resolved = PurePosixPath()
    links = 0
    while len(pending) > 1:
        part = pending.pop(0)
        if part == "..":
            resolved = resolved.parent
        elif (lower / resolved / part).is_symlink():
            links += 1
            if links > _MAX_LINKS:
                raise MachineError(f"{path!r} leads through too many links")
            goal = PurePosixPath(os.readlink(lower / resolved / part))
            if goal.is_absolute():
                resolved = PurePosixPath()
            pending = [*(word for word in goal.parts if word != "/"), *pending]
        else:
            resolved /= part
    return resolved / pending[0]


def _parents(path: PurePosixPath) -> Iterator[PurePosixPath]:
    yield from (parent for parent in path.parents if parent != PurePosixPath("."))


def _make_folder(upper: Path, lower: Path) -> None:
    if upper.is_dir():
        return
    upper.mkdir()
    if lower.is_dir():
        status = lower.stat()
        if os.geteuid() == 0:
            os.chown(upper, status.st_uid, status.st_gid)
        upper.chmod(status.st_mode & 0o7777 | 0o700)
    else:
        upper.chmod(0o755)
