"""A job's spec, which its nodes read: made from what was asked for and from what the nodes say of themselves. Pure."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any  # JSON

from clusterctl_bootstrap.node.environment import DOMAIN
from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.jobs.launcher import Launch
from clusterctl.on_node.job.launch import owned_names
from clusterctl.on_node.job.launchers import EVEN, MPI, ONE_EACH
from clusterctl.on_node.job.lease import free_gpus
from clusterctl.on_node.job.mpi_agent import MOST_NODES
from clusterctl.on_node.job.shared_storage import FOLDER
from clusterctl.text.node_set import fold_numbers
from clusterctl.text.quantities import count

VERSION = 1
IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}")
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
FIRST_PORT, PORTS = 28000, 1000
AUTO = "auto"
AS_ASKED = ("python", "requirements", "requires_python", "setup", "image", "has_own_tmp")
"""The fields of a `JobRequest` that go into the spec unchanged."""
HINT = "clusterctl run --help"


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """What a job is to be, before any node was asked: from `run`, a function's call or a workflow's task."""

    inventory: Inventory
    nodes: tuple[InventoryNode, ...]
    name: str
    launch: Launch
    nproc: str
    """`auto`, or a number."""
    gpus: int | None = None
    """How many GPUs of each node the job takes; None: whole nodes."""
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    image: str | None = None
    """The image in whose containers the ranks run; None: they run on the nodes themselves."""
    timeout_s: float | None = None
    grace_s: float
    is_sudo: bool = False
    python: str | None = None
    """The interpreter: a path on the nodes, or `conda:ENV`."""
    requirements: str | None = None
    """The path of a requirements.txt or a pyproject.toml within the folder that is sent."""
    lock: str | None = None
    """What pip is to install, where uv has locked it; None: the job's first node resolves the requirements."""
    requires_python: str = ""
    """Which versions of Python the lock is for."""
    setup: str | None = None
    """A line for a shell, run once on each node before the job starts."""
    is_shared_wanted: bool = False
    """Whether the job's own folder is to be on storage that its nodes share, if they have any."""
    volumes: tuple[tuple[str, str], ...] = ()
    """Folders of a node that are mounted in the job's containers: (path on the node, path in the container)."""
    has_own_tmp: bool = False
    """Whether /tmp is a folder of the job's own."""
    workflow: Mapping[str, Any] | None = None
    """What is remembered of the workflow whose task this job is; nodes only store it."""
    by: str


def default_name(command: Sequence[str], now: datetime, token: str) -> str:
    """`train-1123-101500-3f9a`: the program, the time, and `token`, which tells two jobs of the same second apart."""
    base = re.sub(r"[^a-z0-9]+", "-", command[0].rsplit("/", 1)[-1].removesuffix(".py").lower()).strip("-")
    return f"{base[:22].strip('-') or 'job'}-{now:%m%d-%H%M%S}-{token}"


def checked_name(name: str) -> str:
    """The name itself. Raises UsageError if it cannot be a job's name."""
    if NAME.fullmatch(name) is None:
        raise UsageError(f"--name {name!r}: write lower-case letters, digits and dashes, at most 40", hint=HINT)
    return name


def checked_image(image: str) -> str:
    """The image's name itself. Raises UsageError for a text that cannot be one."""
    if IMAGE.fullmatch(image) is None:
        raise UsageError(f"--image {image!r}: write a name as docker pull takes it", hint=HINT)
    return image


def problems(request: JobRequest, facts: Mapping[int, Mapping[str, Any]], *, named: Sequence[int] = ()) -> list[str]:
    """Why the job cannot be started on these nodes, one sentence each; `in_use` is for those that other jobs cause.

    `facts`: slot → what its node says of itself; `named`: the slots of the whole cluster that know a job of this name.
    """
    found = []
    if named:
        where = f"{'Node' if len(named) == 1 else 'Nodes'} {fold_numbers(sorted(named))}"
        found.append(f"{where}: a job of the name {request.name} was there already: choose another --name")
    generations = {facts[node.slot]["generation"] for node in request.nodes}
    if len(generations) > 1:
        found.append(f"nodes have different memberships (generations {sorted(generations)}): clusterctl up")
    for node in request.nodes:
        answer = facts[node.slot]
        called = f"Node {node.slot} ({node.name})"
        if answer["slot"] != node.slot or answer["cluster_id"] != request.inventory.cluster_id:
            found.append(f"{called}: another machine answers there")
        if answer["phase"] != "ready":
            found.append(f"{called}: not ready ({answer['phase']}): clusterctl status")
        if request.image is not None and not answer["engine"]:
            found.append(f"{called}: has neither docker nor podman, so --image cannot run there")
        if answer.get("missing_program"):
            found.append(f"{called}: there is no {answer['missing_program']}")
    return [*found, *_gpu_problems(request, {slot: int(answer["gpus"]) for slot, answer in facts.items()})]


def program_on_nodes(request: JobRequest) -> str:
    """The program's path, if it has to be on the nodes already; empty if the job may bring or make it itself."""
    program = request.launch.command[0]
    is_made = request.image is not None or request.setup is not None or request.has_own_tmp
    return program if program.startswith("/") and not is_made else ""


def in_use(request: JobRequest, facts: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """A sentence for each node that other jobs hold, so that this job cannot start on it now."""
    found = []
    for node in request.nodes:
        others = facts[node.slot]["holders"]
        if not others:
            continue
        gpus = int(facts[node.slot]["gpus"])
        free = len(free_gpus(others, gpus))
        if request.gpus is None or free < request.gpus:
            found.append(f"Node {node.slot} ({node.name}): {held_by(others)}{_left(request, free, gpus)}")
    return found


def held_by(others: Sequence[Mapping[str, Any]]) -> str:
    """`in use by the job first`."""
    names = [str(other["job"]) for other in others]
    return f"in use by the job{'' if len(names) == 1 else 's'} {', '.join(names)}"


def _left(request: JobRequest, free: int, gpus: int) -> str:
    return "" if request.gpus is None else f"; of its {gpus} GPUs {free} are free, and --gpus is {request.gpus}"


def _gpu_problems(request: JobRequest, gpus: Mapping[int, int]) -> list[str]:
    """The problems with each slot's GPUs: one line for all nodes that have the same problem."""
    slots_by_problem: dict[str, list[int]] = {}
    for node in request.nodes:
        if problem := _gpu_problem(request, gpus[node.slot]):
            slots_by_problem.setdefault(problem, []).append(node.slot)
    return [
        f"{'Node' if len(slots) == 1 else 'Nodes'} {fold_numbers(sorted(slots))}: {problem}"
        for problem, slots in slots_by_problem.items()
    ]


def _gpu_problem(request: JobRequest, gpus: int) -> str:
    """What is wrong with --gpus or --nproc on a node with `gpus` GPUs; empty if nothing is.

    A node without GPUs runs as many processes as are wanted.
    """
    if request.gpus is not None and request.gpus > gpus:
        helps = f"use --gpus {gpus} or fewer" if gpus else "leave --gpus out"
        return f"--gpus {request.gpus} is more than the {count(gpus, 'GPU')} of each: {helps}"
    most = request.gpus or gpus
    if request.nproc == AUTO or not most or int(request.nproc) <= most:
        return ""
    begin = f"--nproc {request.nproc} is more than the"
    helps = "--nproc auto runs one process for each GPU"
    if request.gpus is None:
        return f"{begin} {count(gpus, 'GPU')} of each: {helps}"
    more = f", or use --gpus {request.nproc}" if int(request.nproc) <= gpus else ""
    return f"{begin} {count(most, 'GPU')} that the job takes of the {gpus} of each: {helps}{more}"


def make_spec(
    request: JobRequest, facts: Mapping[int, Mapping[str, Any]], snapshot: Mapping[str, Any]
) -> dict[str, Any]:
    """The job's spec. `facts`: as of `problems`; `snapshot`: size and number of the files that are sent.

    Raises UsageError for a variable that the job sets itself, for too few free ports, and for what the launcher or a
    container cannot do.
    """
    members = _members(request, facts)
    ports = free_ports(
        request.name,
        [port for node in request.nodes for port in facts[node.slot]["ports_in_use"]],
        count=3 + max(member["nproc"] for member in members),
    )
    spec = {
        "version": VERSION,
        "job": request.name,
        "attempt": 1,
        "cluster": request.inventory.cluster,
        "cluster_id": request.inventory.cluster_id,
        "generation": facts[request.nodes[0].slot]["generation"],
        "by": request.by,
        "user": request.inventory.ssh.user,
        "launcher": request.launch.launcher,
        "launcher_options": list(request.launch.options),
        "command": list(request.launch.command),
        "members": members,
        "leader": _leader(request, facts),
        **dict(zip(("master_port", "channel_port", "jax_port"), ports, strict=False)),
        "tf_ports": list(ports[3:]),
        "environment": dict(request.environment),
        "secrets": list(request.secrets),
        "timeout_s": request.timeout_s,
        "grace_s": request.grace_s,
        "is_sudo": request.is_sudo,
        "volumes": [list(pair) for pair in request.volumes],
        "workflow": None if request.workflow is None else dict(request.workflow),
        "snapshot": dict(snapshot),
        "shared": shared_folder(request, facts),
        **{name: getattr(request, name) for name in AS_ASKED},
    }
    refuse_owned_names(spec)
    _refuse_in_container(request)
    _refuse_uneven(request, members)
    return spec


def shared_folder(request: JobRequest, facts: Mapping[int, Mapping[str, Any]]) -> str | None:
    """The job's folder on storage that all its nodes share; None if they share none, or it is not wanted."""
    mounts = {facts[node.slot].get("shared") for node in request.nodes}
    if not request.is_shared_wanted or len(mounts) != 1 or None in mounts:
        return None
    cluster = f"{request.inventory.name}-{request.inventory.cluster_id}"
    return f"{mounts.pop()}/{FOLDER}/{cluster}/{request.name}"


def refuse_owned_names(spec: Mapping[str, Any]) -> None:
    """Raises UsageError for a variable that the job sets itself, or that torchrun would read as an option (PET_…)."""
    for name in (*spec["environment"], *spec["secrets"]):
        if is_owned(name, spec):
            raise UsageError(f"{name}: the job sets it itself, and another value would break it", hint=HINT)


def is_owned(name: str, spec: Mapping[str, Any]) -> bool:
    """Whether the job sets this variable itself, or torchrun would read it as an option (PET_…)."""
    return name.startswith("PET_") or name in owned_names(spec)


def free_ports(job: str, in_use: Sequence[int], *, count: int) -> tuple[int, ...]:
    """`count` ports on which nobody listens on any node; where the search begins depends on the job's name.

    Raises UsageError if too few are free.
    """
    begin = zlib.crc32(job.encode()) % PORTS
    taken = set(in_use)
    order = (FIRST_PORT + (begin + step) % PORTS for step in range(PORTS))
    free = [port for port in order if port not in taken]
    if len(free) < count:
        last = FIRST_PORT + PORTS - 1
        raise UsageError(f"fewer than {count} of the ports {FIRST_PORT} to {last} are free on all nodes of the job")
    return tuple(free[:count])


def _refuse_uneven(request: JobRequest, members: Sequence[Mapping[str, Any]]) -> None:
    """Raises UsageError if the launcher needs equally many processes on each node, or cannot start on so many nodes."""
    launcher = request.launch.launcher
    counts = {int(member["nproc"]) for member in members}
    if launcher in EVEN and len(counts) > 1:
        counted = ", ".join(f"{member['name']} {member['nproc']}" for member in members)
        hint = "clusterctl run --nproc N, or --launcher torchrun"
        raise UsageError(f"{launcher} starts equally many processes on every node, and these have {counted}", hint=hint)
    if launcher == MPI and len(members) > MOST_NODES:
        raise UsageError(f"MPI on {len(members)} nodes is not built yet: at most {MOST_NODES}", hint=HINT)


def _refuse_in_container(request: JobRequest) -> None:
    """Raises UsageError for options that do not work with --image."""
    if request.image is None:
        return
    if request.python is not None and not request.python.startswith("/"):
        why = f"--python {request.python} with --image: write the interpreter's path inside the image"
        raise UsageError(f"{why}, such as /opt/conda/bin/python", hint=HINT)
    if request.is_sudo:
        why = "--sudo with --image: root in a container would be the node's root for every folder that it has"
        raise UsageError(f"{why}; put what needs root into the image, or leave --image out", hint=HINT)


def _members(request: JobRequest, facts: Mapping[int, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The job's nodes, in the order of their ranks.

    `gpu_indices` are GPUs that are free now. Which ones the job really gets is known once its nodes are held.
    """
    found = []
    for node in sorted(request.nodes, key=lambda node: node.rank):
        gpus, indices = int(facts[node.slot]["gpus"]), None
        if request.gpus is not None:
            indices = list(free_gpus(facts[node.slot]["holders"], gpus)[: request.gpus])
            gpus = request.gpus
        row = {"slot": node.slot, "name": node.name, "address": node.private_ip, "gpus": gpus}
        found.append({**row, "gpu_indices": indices, "nproc": _nproc(request, gpus)})
    return found


def _leader(request: JobRequest, facts: Mapping[int, Mapping[str, Any]]) -> str:
    """The name by which every node knows the job's rank 0; it has the rank in the cluster, not the slot.

    The address if the nodes have another membership than this computer knows: the name may be another node's.
    """
    node = min(request.nodes, key=lambda node: node.rank)
    if facts[node.slot]["generation"] != request.inventory.generation:
        return node.private_ip
    return f"{request.inventory.name}-{node.rank}.{DOMAIN}"


def _nproc(request: JobRequest, gpus: int) -> int:
    if request.nproc != AUTO:
        return int(request.nproc)
    return 1 if request.launch.launcher in ONE_EACH else max(1, gpus)
