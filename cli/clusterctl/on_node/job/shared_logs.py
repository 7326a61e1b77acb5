"""A copy of a job's output on a node, on storage that all its nodes share, beside the job's own folder there."""

from __future__ import annotations

import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping, Optional

from clusterctl.on_node.job.kept_files import log_rows
from clusterctl.on_node.job.launch import member_of
from clusterctl.on_node.job.layout import Layout, read_json
from clusterctl.on_node.job.shared_storage import as_user

COPY_S = 15.0
"""How long a job's end waits for its output to be there, too: storage that hangs must not keep its nodes."""


def start_copy(spec: Mapping[str, Any], program: Path) -> Optional[subprocess.Popen[bytes]]:
    """A process of the login user's that copies this node's output to shared storage; None if the job has none."""
    if not spec.get("shared"):
        return None
    argv = [sys.executable, "-IS", str(program), "share-logs", spec["job"]]
    return subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **as_user(pwd.getpwnam(spec["user"]))
    )


def await_copy(copy: Optional[subprocess.Popen[bytes]]) -> None:
    """Waits for the copy, at most for `COPY_S`; then kills it, and does not wait for that."""
    try:
        if copy is not None:
            copy.wait(COPY_S)
    except subprocess.TimeoutExpired:
        if copy is not None:
            copy.kill()


def share_logs(layout: Layout, job: str) -> None:
    """Copies this node's output, in the process that `start_copy` starts. Raises OSError."""
    spec = read_json(layout.spec(job))
    slot = int(read_json(layout.node_file)["slot"])
    target = Path(spec["shared"]) / "logs" / str(spec["members"][member_of(spec, slot)]["name"])
    for path, name in log_rows(layout, job):
        if path != layout.state(job) and path.is_file() and not path.is_symlink():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / name)
