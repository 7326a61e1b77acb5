"""The containers of a job on one node: what each is started with, from the spec and what the node has."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Tuple

from clusterctl.on_node.job import container
from clusterctl.on_node.job.container import Argv, Bind, ContainerRequest
from clusterctl.on_node.job.job_environment import job_folder, own_environment, own_folder, python_folders
from clusterctl.on_node.job.launchers import MPI
from clusterctl.on_node.job.layout import Layout, read_json, write_json
from clusterctl.on_node.job.resolv_conf import RESOLV_CONF
from clusterctl.on_node.job.shared_storage import present_paths, shared_paths
from clusterctl.on_node.job.this_process import adopt_orphans

SHARED_MEMORY = "/dev/shm"
HIDDEN_FOLDERS = ("/boot", "/dev", "/etc/clusterctl", "/proc", "/root", "/run", "/sys", "/var/lib/clusterctl")
"""Folders of a node that no task mounts: its keys, other jobs, and what only root may see."""
OWN = ("PATH", "HOME")
"""Variables that a container does not get from the node: the search path is the image's, and HOME is the folder in
which the job keeps things, as its user has no home in the image."""


class JobContainers:
    """Starts a job's processes on a node in containers of its image."""

    def __init__(self, layout: Layout, spec: Mapping[str, Any], node_rank: int, program: Path) -> None:
        self._layout = layout
        self._spec = spec
        self._member = spec["members"][node_rank]
        self._program = program
        self._user = pwd.getpwnam(spec["user"])
        self._count = 0
        self._storage: Optional[Tuple[str, ...]] = None
        self._refusal = ""
        """Why the storage does not answer; each rank of the node would otherwise wait again to find that out."""

    def argv(self, argv: Argv, environment: Mapping[str, str], *, is_daemon: bool = False) -> Argv:
        """The engine's argv that runs `argv` with these variables in a container. Raises OSError, ValueError.

        `is_daemon`: the container stays until what `argv` leaves in the background has ended.
        """
        job, attempt = self._spec["job"], int(self._spec["attempt"])
        name = container.container_name(job, attempt, self._count)
        variables = variables_file(self._layout, job, attempt, self._count)
        return self._argv(argv, environment, name, variables, verb="attend" if is_daemon else "inside")

    def ready_argv(self, argv: Argv, environment: Mapping[str, str], *, making: Optional[Path] = None) -> Argv:
        """The engine's argv for what comes before the job's start, such as pip. Raises OSError, ValueError.

        `making`: the folder of an environment; it is made here, and the container can write it.
        """
        if making is not None:
            making.parent.mkdir(parents=True, exist_ok=True)
            making.mkdir(exist_ok=True)
            os.chown(making, self._user.pw_uid, self._user.pw_gid)
        job, attempt = self._spec["job"], int(self._spec["attempt"])
        name = container.ready_name(job, attempt, self._count)
        variables = self._layout.attempt(job, attempt) / "environment-ready.json"
        return self._argv(argv, environment, name, variables, making=making)

    def _argv(
        self,
        argv: Argv,
        environment: Mapping[str, str],
        name: str,
        variables: Path,
        *,
        verb: str = "inside",
        making: Optional[Path] = None,
    ) -> Argv:
        storage = self._present_storage()
        self._count += 1
        kept = set(environment).difference(OWN) | set(self._spec["environment"])
        own = {name: environment[name] for name in sorted(kept)}
        if "PATH" in own:  # as the person wrote it: what comes before it is in `path_first`
            own["PATH"] = str(self._spec["environment"]["PATH"])
        write_json(
            variables,
            {
                "variables": {"HOME": str(own_folder(self._layout, self._spec)), **own},
                "path_first": python_folders(self._layout, self._spec["job"]),
            },
        )
        inside = [entry_python(self._spec), "-IS", str(self._program), verb, str(variables), "--", *argv]
        return container.run_argv(self._request(name, storage, making), inside)

    def _present_storage(self) -> Tuple[str, ...]:
        """The paths at which storage is mounted. Raises ValueError if one does not answer, at once the second time."""
        if self._refusal:
            raise ValueError(self._refusal)
        if self._storage is None:
            try:
                self._storage = present_paths(shared_paths(self._layout))
            except ValueError as e:
                self._refusal = str(e)
                raise
        return self._storage

    def _request(self, name: str, storage: Tuple[str, ...], making: Optional[Path] = None) -> ContainerRequest:
        user, job, engine = self._user, self._spec["job"], container.present_engine() or container.DOCKER
        own = (
            *self._own_binds(),
            *self._environment_binds(making),
            *(self._account_binds() if engine == container.DOCKER else ()),
            *container.present_binds(self._layout.root, storage),
        )
        return ContainerRequest(
            engine=engine,
            image_id=self._spec["image_id"],
            job=job,
            name=name,
            uid=user.pw_uid,
            gid=user.pw_gid,
            groups=tuple(group for group in os.getgrouplist(user.pw_name, user.pw_gid) if group != user.pw_gid),
            folder=str(job_folder(self._layout, self._spec)),
            binds=(*own, *volume_binds(self._spec.get("volumes") or (), own)),
            devices=container.present_devices(self._layout.root),
            gpu_indices=self._gpu_indices(),
        )

    def _own_binds(self) -> tuple[Bind, ...]:
        """The job's folder, in which the container may change what the job may change on the node itself."""
        job = self._spec["job"]
        theirs = (self._layout.code(job), self._layout.work(job), self._layout.ranks(job, self._spec["attempt"]))
        secrets, resolv_conf = self._layout.secrets(job), self._layout.resolv_conf(job)
        return (
            Bind(str(self._program)),
            Bind(str(self._layout.folder(job))),
            *(Bind(str(path), is_writable=True) for path in theirs),
            *([Bind(str(secrets))] if secrets.exists() else []),
            *([Bind("/" + RESOLV_CONF, source=str(resolv_conf))] if resolv_conf.exists() else []),
        )

    def _account_binds(self) -> tuple[Bind, ...]:
        """A list of accounts with the node's and the job's user: mpirun starts nothing for a user without a name.

        Only for docker: podman names the user of a container by itself.
        """
        if self._spec["launcher"] != MPI:
            return ()
        user = self._user
        accounts = self._layout.attempt(self._spec["job"], self._spec["attempt"]) / "passwd"
        row = (user.pw_name, "x", str(user.pw_uid), str(user.pw_gid), "", str(own_folder(self._layout, self._spec)))
        rows = [line for line in accounts_of(self._layout) if not line.startswith(user.pw_name + ":")]
        accounts.write_text("".join(line + "\n" for line in [*rows, ":".join([*row, "/bin/sh"])]))
        return (Bind("/etc/passwd", source=str(accounts)),)

    def _environment_binds(self, making: Optional[Path]) -> tuple[Bind, ...]:
        """The environment of the job's requirements, read-only once it is made; one on shared storage is there anyway.

        Only at paths that we chose: the image says where its interpreter is, and root must not mount just any path.
        """
        if not self._spec.get("requirements") or self._spec.get("shared"):
            return ()
        if making is not None:
            return (Bind(str(making), is_writable=True),)
        environment = own_environment(self._layout, self._spec["job"])
        return () if environment is None else (Bind(str(environment)),)

    def _gpu_indices(self) -> tuple[int, ...] | None:
        if not container.has_nvidia(self._layout.root):
            return ()
        indices = self._member["gpu_indices"]
        return None if indices is None else tuple(indices)


def variables_file(layout: Layout, job: str, attempt: int, number: int) -> Path:
    """The variables that a container's program begins with; its folder is in the container, too."""
    return layout.attempt(job, attempt) / ("environment-%d.json" % number)


def volume_binds(volumes: Sequence[Sequence[str]], own: Sequence[Bind]) -> tuple[Bind, ...]:
    """The node's folders that the job asked for, but for those that it has anyway.

    Root mounts them, and follows links; one that somebody has put there must not lead to the node's keys. Raises
    ValueError for a folder that is not there, leads where it may not, or would hide one that the job has.
    """
    found = []
    places = {bind.path: bind.source or bind.path for bind in own}
    for source, target in volumes:
        real = os.path.realpath(source)
        if not os.path.exists(real):
            raise ValueError("volumeMounts: %s is not on this node" % source)
        if real != SHARED_MEMORY and any(_is_within(real, each) or _is_within(each, real) for each in HIDDEN_FOLDERS):
            raise ValueError("volumeMounts: %s leads to %s, which no task mounts" % (source, real))
        if target in places:
            if os.path.realpath(places[target]) != real:
                raise ValueError("volumeMounts: %s is %s already" % (target, places[target]))
            continue
        found.append(Bind(target, is_writable=True, source=real))
    return tuple(found)


def _is_within(path: str, folder: str) -> bool:
    return (path.rstrip("/") + "/").startswith(folder.rstrip("/") + "/")


def accounts_of(layout: Layout) -> list[str]:
    """The lines of the node's own accounts; none where they cannot be read."""
    try:
        return (layout.root / "etc/passwd").read_text().splitlines()
    except (OSError, ValueError):
        return []


def entry_python(spec: Mapping[str, Any]) -> str:
    """The image's interpreter, with which each container begins; it starts all else."""
    return str(spec.get("python") or "python3")


def variables_inside(path: Path, image: Mapping[str, str]) -> dict[str, str]:
    """In the container: the job's variables; PATH has the job's own folders before the job's, or the image's, path.

    `image`: the variables of the image. Raises OSError, ValueError, LookupError.
    """
    words = read_json(path)
    found = {str(name): str(value) for name, value in words["variables"].items()}
    first = [str(folder) for folder in words["path_first"]]
    if first:
        found["PATH"] = ":".join([*first, found.get("PATH", image.get("PATH", os.defpath))])
    return found


def answer_inside(words: Sequence[str]) -> int:
    """The verb, in the container: `words` are the file of variables, `--`, and the command that it becomes."""
    variables, _, *command = words
    enter(Path(variables), command)
    return 0


def answer_attend(words: Sequence[str]) -> int:
    """The verb, in the container: `words` are the file of variables, `--`, and the command; gives its exit code."""
    variables, _, *command = words
    return attend(Path(variables), command)


def enter(variables: Path, argv: Argv) -> None:
    """In the container: this process becomes `argv`, with the job's variables. Raises OSError, ValueError."""
    os.environ.update(variables_inside(variables, os.environ))
    os.execvp(argv[0], argv)


def attend(variables: Path, argv: Argv) -> int:
    """In the container, as its first process: runs `argv`, and stays until all that it left behind has ended.

    The exit code is that of `argv`. Raises OSError, ValueError.
    """
    adopt_orphans()
    os.environ.update(variables_inside(variables, os.environ))
    first = os.posix_spawnp(argv[0], argv, os.environ)
    code = 0
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return code
        if pid == first:
            ended = os.waitstatus_to_exitcode(status)
            code = 128 - ended if ended < 0 else ended
