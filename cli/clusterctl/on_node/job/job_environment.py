"""The environment that a job's processes begin with on one node: the node's own, the job's, and its folders."""

from __future__ import annotations

import contextlib
import pwd
import shlex
from pathlib import Path
from typing import Any, Mapping

from clusterctl.on_node.job import launch
from clusterctl.on_node.job.layout import Layout, read_json
from clusterctl.on_node.job.processes import JOB_VARIABLE
from clusterctl.on_node.job.rank_end import own_bytes

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PYTHON_FILE = "python.json"
"""The file in a job's folder that names its own `interpreter` and `environment`, if it has them: two paths."""
MOST_SECRET_BYTES = 256 * 1024
"""No secret is longer: an `--env-file` has at most so many bytes, and Linux allows a variable 128 KiB (execve(2))."""


def job_environment(layout: Layout, spec: dict[str, Any], node_rank: int) -> dict[str, str]:
    """What every process of the job has here, before a launcher adds what it knows of ranks."""
    job, user = spec["job"], pwd.getpwnam(spec["user"])
    cluster = read_environment(layout.root / "etc/clusterctl/env")
    cluster.update(read_environment(layout.root / "etc/clusterctl/nccl.env"))
    found = {
        "PATH": PATH,
        "LANG": "C.UTF-8",
        "HOME": user.pw_dir,
        "USER": user.pw_name,
        "LOGNAME": user.pw_name,
        **launch.environment(spec, node_rank, cluster, str(layout.folder(job))),
        "CLUSTERCTL_JOB_DIR": str(own_folder(layout, spec)),
        "CLUSTERCTL_WARNING_FILE": str(layout.warning(job)),
        JOB_VARIABLE: job,
    }
    return {**found, **_by_python(layout, job, found["PATH"])}


def python_folders(layout: Layout, job: str) -> list[str]:
    """What comes first in PATH where the job has an interpreter of its own: names for it, and its programs."""
    interpreter = own_interpreter(layout, job)
    return [] if interpreter is None else [str(layout.folder(job) / "bin"), str(interpreter.parent)]


def own_interpreter(layout: Layout, job: str) -> Path | None:
    """The path of the job's own interpreter, once it is known; None: it has none."""
    try:
        return Path(read_json(layout.folder(job) / PYTHON_FILE)["interpreter"])
    except (OSError, ValueError, LookupError):
        return None


def own_environment(layout: Layout, job: str) -> Path | None:
    """The folder of the environment that was made for the job; None: there is none, or not yet."""
    try:
        return Path(read_json(layout.folder(job) / PYTHON_FILE)["environment"])
    except (OSError, ValueError, LookupError):
        return None


def _by_python(layout: Layout, job: str, path: str) -> dict[str, str]:
    """What tells programs which environment they are in, where the job has an interpreter of its own.

    The interpreter's folders come first in PATH, also before what the job itself has there (`path`).
    """
    folders = python_folders(layout, job)
    if not folders:
        return {}
    place = Path(folders[-1])
    found = {"PATH": ":".join([*folders, path])}
    if (place.parent / "pyvenv.cfg").exists():
        found["VIRTUAL_ENV"] = str(place.parent)
    if (place.parent / "conda-meta").exists():
        found.update(CONDA_PREFIX=str(place.parent), CONDA_DEFAULT_ENV=place.parent.name)
    return found


def job_folder(layout: Layout, spec: Mapping[str, Any]) -> Path:
    """The folder in which the job's processes begin."""
    return layout.code(spec["job"]) / str(spec.get("folder", ""))


def own_folder(layout: Layout, spec: Mapping[str, Any]) -> Path:
    """`CLUSTERCTL_JOB_DIR`: on shared storage where the job has a folder there, else this node's own."""
    return Path(spec["shared"]) / "work" if spec.get("shared") else layout.work(spec["job"])


def secret_values(folder: Path) -> dict[str, str]:
    """The job's secrets by name; none where it has none, or they are gone."""
    try:
        return {path.name: path.read_text() for path in folder.iterdir()}
    except FileNotFoundError:
        return {}


def own_secrets(folder: Path, uid: int) -> dict[str, str]:
    """The job's secrets by name, read by root: the folder is the job's user's, so links may be in it.

    What is not a file of that user's is left out.
    """
    found = {}
    try:
        for path in sorted(folder.iterdir()):
            with contextlib.suppress(OSError, ValueError):
                found[path.name] = own_bytes(path, uid, MOST_SECRET_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return {}
    return found


def read_environment(path: Path) -> dict[str, str]:
    """The variables of a file that a shell could read."""
    try:
        words = shlex.split(path.read_text(), comments=True)
    except (OSError, ValueError):
        return {}
    pairs = (word.partition("=") for word in words)
    return {name: value for name, equals, value in pairs if equals}
