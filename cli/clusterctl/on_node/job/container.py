"""A job's processes in containers of an image: the engine's argv (pure), and what a node has of engines and devices.

docker and podman are asked the same way, except for GPUs and limits. Sources: Docker's reference of `docker run`, and
podman-run(1) 4.3, read 2026-11-25; what podman does on a rehearsed node was tried.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, List, Mapping, NamedTuple, Sequence, Tuple

from clusterctl.on_node.job.layout import Layout, read_json

DOCKER, PODMAN = "docker", "podman"
ENGINES = (DOCKER, PODMAN)
LABEL = "clusterctl.job"
LOOK_S, REMOVE_S = 30.0, 60.0
CONTRACT = ("env", "env.list", "hostfile", "nccl.env", "node.json")
"""Files of /etc/clusterctl that a container sees; the key and the secret that lie beside them stay outside."""
CONTRACT_FOLDER = "etc/clusterctl"
NETWORK_DEVICES = ("dev/infiniband", "dev/gdrdrv")
NVIDIA_DEVICE = "dev/nvidiactl"
STACK_BYTES = 64 * 1024 * 1024
OPEN_FILES = 1048576
CLIENT_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/root",  # where root's logins to registries are
}
"""The engine's command is root's: nothing that the job sets is in its environment."""
Argv = List[str]


class Bind(NamedTuple):
    """A folder or file of the node that the container has, at the same path unless `source` differs."""

    path: str
    is_writable: bool = False
    source: str = ""
    """Its path on the node, if another one."""


class ContainerRequest(NamedTuple):
    """One container of a job on this node."""

    engine: str
    image_id: str
    job: str
    name: str
    uid: int
    gid: int
    groups: Tuple[int, ...]
    folder: str
    """The folder in which its program begins."""
    binds: Tuple[Bind, ...]
    devices: Tuple[str, ...]
    gpu_indices: Tuple[int, ...] | None = ()
    """Which GPUs of the node it gets; None: all of them."""


class ExecRequest(NamedTuple):
    """A command to run in a container of a job, beside what runs there."""

    engine: str
    name: str
    uid: int
    gid: int
    folder: str
    has_terminal: bool
    terminal_type: str
    """TERM; empty: none is set."""


def container_name(job: str, attempt: int, number: int) -> str:
    """What the job's containers on a node are called, in the order in which its supervisor starts them, from 0."""
    return "clusterctl-%s-%d-%d" % (job, attempt, number)


def ready_name(job: str, attempt: int, number: int) -> str:
    """What a container is called that makes something ready for the job before its start."""
    return "clusterctl-%s-%d-ready-%d-%d" % (job, attempt, os.getpid(), number)


def run_argv(request: ContainerRequest, program: Argv) -> Argv:
    """The engine's argv for a container that runs `program` and is gone when that ends.

    The container shares the node's network and shared memory: NCCL finds every interface, and ranks of a node find each
    other. The engine keeps no log: the job has its own, of a bounded size. Of the job's environment the container is
    given no more than the job's name: `program` reads the rest from a file.
    """
    return [
        *(request.engine, "run", "--rm", "--pull", "never", "--name", request.name),
        *("--label", "%s=%s" % (LABEL, request.job), "--env", "CLUSTERCTL_JOB=" + request.job),
        *("--network", "host", "--ipc", "host", "--log-driver", "none"),
        *("--user", "%d:%d" % (request.uid, request.gid)),
        *(word for group in request.groups for word in ("--group-add", str(group))),
        *("--security-opt", "no-new-privileges", "--cap-drop", "all"),
        *_limits(request.engine),
        *_gpus(request.engine, request.gpu_indices),
        *(word for device in request.devices for word in ("--device", device)),
        *(word for bind in request.binds for word in ("--mount", _mount(bind))),
        *("--workdir", request.folder, "--entrypoint", program[0], request.image_id, *program[1:]),
    ]


def exec_argv(request: ExecRequest, program: Argv) -> Argv:
    """The engine's argv to run `program` in a container that runs already, with the container's rights and view."""
    return [
        *(request.engine, "exec", "--interactive", *(["--tty"] if request.has_terminal else [])),
        *("--user", "%d:%d" % (request.uid, request.gid), "--workdir", request.folder),
        *(["--env", "TERM=" + request.terminal_type] if request.terminal_type else []),
        *(request.name, *program),
    ]


def _limits(engine: str) -> Argv:
    """Locked memory for RDMA, as the job's service has it. podman hands on the limits of whoever calls it."""
    if engine == PODMAN:
        return ["--ulimit", "host"]
    values = ("memlock=-1:-1", "stack=%d:%d" % (STACK_BYTES, STACK_BYTES), "nofile=%d:%d" % (OPEN_FILES, OPEN_FILES))
    return [word for value in values for word in ("--ulimit", value)]


def _gpus(engine: str, indices: Sequence[int] | None) -> Argv:
    """podman silently ignores `--gpus`, and names devices by CDI; docker reads a list as one quoted field."""
    if indices is not None and not indices:
        return []
    if engine == PODMAN:
        names = ["all"] if indices is None else [str(index) for index in indices]
        return [word for name in names for word in ("--device", "nvidia.com/gpu=" + name)]
    return ["--gpus", "all" if indices is None else '"device=%s"' % ",".join(map(str, indices))]


def _mount(bind: Bind) -> str:
    """Raises ValueError for a path that an engine would read as several fields."""
    source = bind.source or bind.path
    for path in (source, bind.path):
        if "," in path or '"' in path:
            raise ValueError("%s: a path with a comma or a quote cannot be in a container" % path)
    return "type=bind,source=%s,target=%s%s" % (source, bind.path, "" if bind.is_writable else ",readonly")


def renumbered(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec as a container sees it: of the node's GPUs it has only its own, which are counted from 0 there."""
    members = [
        member
        if member.get("gpu_indices") is None
        else {**member, "gpu_indices": list(range(len(member["gpu_indices"])))}
        for member in spec["members"]
    ]
    return {**spec, "members": members}


def present_binds(root: Path, storage: Sequence[str]) -> tuple[Bind, ...]:
    """The node contract, and the storage that the node has at these paths."""
    contract = [Bind(str(root / CONTRACT_FOLDER / name)) for name in CONTRACT]
    there = [bind for bind in contract if os.path.exists(bind.path)]
    return (*there, *(Bind(path, is_writable=True) for path in storage))


def present_devices(root: Path) -> tuple[str, ...]:
    """The devices of EFA and InfiniBand, and GPUDirect copies'."""
    return tuple(str(root / path) for path in NETWORK_DEVICES if (root / path).exists())


def has_nvidia(root: Path) -> bool:
    """Whether the node has GPUs that an engine can hand on; simulated ones are none."""
    return (root / NVIDIA_DEVICE).exists()


def present_engine() -> str:
    """What runs containers on this node; empty where nothing does."""
    return next((engine for engine in ENGINES if shutil.which(engine) is not None), "")


def remove_job(layout: Layout, job: str) -> None:
    """Removes the job's remaining containers from this node; does nothing for a job without an image."""
    engine = present_engine()
    if engine and has_image(layout, job):
        remove_containers(engine, job)


def has_image(layout: Layout, job: str) -> bool:
    """Whether the job runs in containers."""
    try:
        return bool(read_json(layout.spec(job)).get("image_id"))
    except (OSError, ValueError):
        return False


def remove_containers(engine: str, job: str) -> None:
    """Ends and removes whatever is left of the job's containers; one that the engine cannot remove stays."""
    look = [engine, "ps", "--all", "--quiet", "--filter", "label=%s=%s" % (LABEL, job)]
    try:
        done = subprocess.run(
            look, stdin=subprocess.DEVNULL, capture_output=True, timeout=LOOK_S, env=CLIENT_ENVIRONMENT
        )
        found = done.stdout.decode("ascii", "replace").split()
        if found:
            subprocess.run(
                [engine, "rm", "--force", *found],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=REMOVE_S,
                env=CLIENT_ENVIRONMENT,
            )
    except (OSError, subprocess.TimeoutExpired):
        pass  # the ranks have ended already: they were killed as processes of the job
