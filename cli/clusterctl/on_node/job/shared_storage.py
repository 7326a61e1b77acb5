"""Storage that all nodes of a job share: where it is mounted, and the job's own folder there."""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
import time
from pathlib import Path
from typing import Any, Iterable, List, Mapping, Optional, Tuple

from clusterctl.on_node.job.layout import Layout, read_json

KINDS = ("fsx-lustre", "efs")
"""Kinds of storage on which files can be written in place; in a bucket they cannot."""
FOLDER = "clusterctl-jobs"
MAKE_S = 20.0
LOOK_S, KILLED_S = 10.0, 1.0


def shared_mount(root: Path, facts: Mapping[str, Any]) -> Optional[str]:
    """Where the first file system is mounted that all nodes may write; None: there is none.

    Found in the kernel's list: to look at the path itself would wait for a server that is away.
    """
    try:
        mounted = {line.split()[4] for line in (root / "proc/self/mountinfo").read_text().splitlines()}
    except OSError:
        return None
    for mount in facts.get("mounts") or []:
        if mount["kind"] in KINDS and mount["writable"] and mount["path"] in mounted:
            return str(mount["path"])
    return None


def shared_paths(layout: Layout) -> tuple[str, ...]:
    """The paths at which this node has storage mounted, as its plan says."""
    try:
        mounts = read_json(layout.node_file).get("mounts") or []
        return tuple(str(mount["path"]) for mount in mounts)
    except (OSError, ValueError, LookupError, TypeError):
        return ()


def make_folder(spec: Mapping[str, Any]) -> None:
    """Makes `$CLUSTERCTL_JOB_DIR` on shared storage, where the job has it there. Raises ValueError."""
    if spec.get("shared"):
        try:
            done = subprocess.run(
                folder_argv(str(spec["shared"])),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=MAKE_S,
                **as_user(pwd.getpwnam(spec["user"])),
            )
        except subprocess.TimeoutExpired as e:
            raise ValueError("%s: no answer within %g s" % (spec["shared"], MAKE_S)) from e
        if done.returncode:
            raise ValueError(done.stderr.decode(errors="replace").strip()[-300:])


def folder_argv(shared: str) -> List[str]:
    """The argv that makes the job's folder on shared storage, for its owner only, and in it the folder for its work.

    `-m` is for folders that are named; those above them get the usual mode.
    """
    return ["mkdir", "-p", "-m", "700", shared, shared + "/work"]


def present_paths(paths: Iterable[str], within_s: float = LOOK_S) -> Tuple[str, ...]:
    """The paths that exist. Raises ValueError for one that does not answer.

    Child processes look, since a look at a mount whose server is away (NFS, EFS, Lustre) waits for it; one that does
    not even end when it is killed is left behind.
    """
    until = time.monotonic() + within_s
    looks = [(path, subprocess.Popen(["test", "-e", path], stdin=subprocess.DEVNULL)) for path in paths]
    found, silent = [], []
    for path, look in looks:
        try:
            if look.wait(max(0.0, until - time.monotonic())) == 0:
                found.append(path)
        except subprocess.TimeoutExpired:
            look.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                look.wait(KILLED_S)
            silent.append(path)
    if silent:
        raise ValueError("%s: no answer within %g s; its server is away (umount -f -l)" % (", ".join(silent), within_s))
    return tuple(found)


def as_user(user: pwd.struct_passwd) -> dict[str, Any]:
    """Arguments of Popen with which root starts a process of this user; none where nobody is root."""
    if os.getuid() != 0:
        return {}
    groups = os.getgrouplist(user.pw_name, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": groups}
