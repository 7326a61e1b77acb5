"""The names of nodes for a workflow's task: its own name server, and a resolv.conf of the task's own that means it."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping

from clusterctl.on_node.job.layout import Layout
from clusterctl.on_node.job.resolv_conf import RESOLV_CONF, own_resolv_conf
from clusterctl.on_node.job.this_process import bind_file

STARTED_WITHIN_S = 10.0


def serve_task(layout: Layout, spec: Mapping[str, Any], program: Path) -> None:
    """Starts a task's name server, which ends with this process. A node where that is not possible has none.

    `JobContainers` mounts the task's resolv.conf in a container; without one it is mounted here, if /tmp is the task's
    own, too. The node's own file stays as it is.
    """
    own = layout.root / RESOLV_CONF
    # Only root may listen at port 53, and mount.
    if not spec.get("workflow") or os.getuid() != 0 or not own.exists():
        return
    file = layout.resolv_conf(spec["job"])
    with contextlib.suppress(OSError):
        text = own.read_text(errors="replace")
        if address := _started(program):
            file.write_text(own_resolv_conf(text, address))
            file.chmod(0o644)
            if has_own_mounts(layout, spec["job"]):
                bind_file(file, own)


def has_own_mounts(layout: Layout, job: str) -> bool:
    """Whether this process has the job's own mounts: then its /tmp is the job's (`keeper_service.with_own_tmp`)."""
    own = layout.tmp(job)
    return own.exists() and os.path.samestat(own.stat(), (layout.root / "tmp").stat())


def _started(program: Path) -> str:
    """The address of the server; empty where it could not start."""
    argv = [sys.executable, "-IS", str(program), "serve-names"]
    child = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={"LANG": "C.UTF-8"}
    )
    assert child.stdout is not None, "it is a pipe"
    with child.stdout:
        ready, _, _ = select.select([child.stdout], [], [], STARTED_WITHIN_S)
        address = child.stdout.readline().decode("ascii", "replace").strip() if ready else ""
    if not address:
        child.kill()
        child.wait()
    return address
