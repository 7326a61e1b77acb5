"""The containers of a job on one node: what each is started with, from the spec and what the node has."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any, Mapping, Optional, Tuple

from clusterctl.on_node.job import container
from clusterctl.on_node.job.container import Argv, Bind, ContainerRequest
from clusterctl.on_node.job.job_environment import job_folder, own_folder
from clusterctl.on_node.job.layout import Layout, read_json, write_json
from clusterctl.on_node.job.shared_storage import present_paths

OWN = ("PATH", "HOME")
"""The image's search path holds, and its user has no home in the image: its home is the job's folder to keep things."""


class JobContainers:
    """Puts what a node's supervisor starts into containers of the job's image."""

    def __init__(self, layout: Layout, spec: Mapping[str, Any], node_rank: int, program: Path) -> None:
        self._layout = layout
        self._spec = spec
        self._member = spec["members"][node_rank]
        self._program = program
        self._user = pwd.getpwnam(spec["user"])
        self._count = 0
        self._storage: Optional[Tuple[str, ...]] = None
        self._refusal = ""
        """Why the storage is not there: said to all ranks of the node, of which each would wait as long."""

    def argv(self, argv: Argv, environment: Mapping[str, str]) -> Argv:
        """The engine's argv that runs `argv` with these variables in a container. Raises OSError, ValueError."""
        storage = self._present_storage()
        job, attempt = self._spec["job"], int(self._spec["attempt"])
        variables = variables_file(self._layout, job, attempt, self._count)
        kept = set(environment).difference(OWN) | set(self._spec["environment"])
        own = {name: environment[name] for name in sorted(kept)}
        write_json(variables, {"HOME": str(own_folder(self._layout, self._spec)), **own})
        inside = ["python3", "-I", str(self._program), "inside", str(variables), "--", *argv]
        request = self._request(container.container_name(job, attempt, self._count), storage)
        self._count += 1
        return container.run_argv(request, inside)

    def _present_storage(self) -> Tuple[str, ...]:
        """Where storage is mounted that answers. Raises ValueError, at once where it was looked at already."""
        if self._refusal:
            raise ValueError(self._refusal)
        if self._storage is None:
            try:
                self._storage = present_paths(shared_paths(self._layout))
            except ValueError as e:
                self._refusal = str(e)
                raise
        return self._storage

    def _request(self, name: str, storage: Tuple[str, ...]) -> ContainerRequest:
        user, job = self._user, self._spec["job"]
        return ContainerRequest(
            engine=container.present_engine() or container.DOCKER,
            image_id=self._spec["image_id"],
            job=job,
            name=name,
            uid=user.pw_uid,
            gid=user.pw_gid,
            groups=tuple(group for group in os.getgrouplist(user.pw_name, user.pw_gid) if group != user.pw_gid),
            folder=str(job_folder(self._layout, self._spec)),
            binds=(*self._own_binds(), *container.present_binds(self._layout.root, storage)),
            devices=container.present_devices(self._layout.root),
            gpu_indices=self._gpu_indices(),
        )

    def _own_binds(self) -> tuple[Bind, ...]:
        """The job's folder, of which it may change what it may change on the node itself."""
        job = self._spec["job"]
        theirs = (self._layout.code(job), self._layout.work(job), self._layout.ranks(job, self._spec["attempt"]))
        secrets = self._layout.secrets(job)
        return (
            Bind(str(self._program)),
            Bind(str(self._layout.folder(job))),
            *(Bind(str(path), is_writable=True) for path in theirs),
            *([Bind(str(secrets))] if secrets.exists() else []),
        )

    def _gpu_indices(self) -> tuple[int, ...] | None:
        if not container.has_nvidia(self._layout.root):
            return ()
        indices = self._member["gpu_indices"]
        return None if indices is None else tuple(indices)


def variables_file(layout: Layout, job: str, attempt: int, number: int) -> Path:
    """The variables that a container's program begins with; its folder is in the container, too."""
    return layout.attempt(job, attempt) / ("environment-%d.json" % number)


def shared_paths(layout: Layout) -> tuple[str, ...]:
    """Where this node has storage mounted, as its plan says."""
    try:
        mounts = read_json(layout.node_file).get("mounts") or []
        return tuple(str(mount["path"]) for mount in mounts)
    except (OSError, ValueError, LookupError, TypeError):
        return ()


def enter(variables: Path, argv: Argv) -> None:
    """In the container: this process becomes `argv`, with the job's variables. Raises OSError, ValueError."""
    os.environ.update({str(name): str(value) for name, value in read_json(variables).items()})
    os.execvp(argv[0], argv)


def remove(layout: Layout, job: str) -> None:
    """What is left of the job's containers on this node goes; nothing where it runs without an image."""
    engine = container.present_engine()
    if engine and has_image(layout, job):
        container.remove_containers(engine, job)


def has_image(layout: Layout, job: str) -> bool:
    """Whether the job runs in containers."""
    try:
        return bool(read_json(layout.spec(job)).get("image_id"))
    except (OSError, ValueError):
        return False
