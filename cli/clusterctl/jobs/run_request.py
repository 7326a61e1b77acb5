"""`clusterctl run`: what was asked for, and how it is carried out."""

from __future__ import annotations

import importlib
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from secrets import token_hex
from typing import Any  # JSON

from clusterctl_infra.errors import UsageError
from clusterctl_infra.nearest import did_you_mean

from clusterctl.jobs.attached import kept_attached
from clusterctl.jobs.env_file import read_env_file
from clusterctl.jobs.images import registry_login
from clusterctl.jobs.known import job_nodes
from clusterctl.jobs.launcher import chosen_launch
from clusterctl.jobs.snapshot import ASK_BYTES, Snapshot, take_snapshot
from clusterctl.jobs.spec import AUTO, HINT, JobRequest, checked_image, checked_name, default_name
from clusterctl.jobs.start import JobStart, started_by
from clusterctl.jobs.uv_lock import LOCK, PROJECT, UvLock, read_uv_lock
from clusterctl.on_node.job import launch, launchers
from clusterctl.options import chosen_cluster, chosen_rows
from clusterctl.output import Output

MIB = 1024 * 1024
RANK_PARENT = ["RANK"]
"""What `--dry-run` shows in place of the program that runs one rank and reports how it ended."""


@dataclass(frozen=True, kw_only=True)
class RunFlags:
    """The flags and words of `clusterctl run`, parsed."""

    cluster: str | None
    node: str
    launcher: str | None
    nproc: str
    gpus: int | None
    wait_s: float | None
    name: str | None
    env: Mapping[str, str]
    env_file: Path | None
    python: str | None
    requirements: Path | None
    setup: str | None
    secrets: tuple[str, ...]
    image: str | None
    registry_secret: str | None
    """The name of a variable on this computer that holds USER:PASSWORD for the image's registry."""
    workdir: Path
    including: tuple[str, ...]
    timeout_s: float | None
    grace_s: float
    is_sudo: bool
    is_detached: bool
    is_dry_run: bool
    is_agreed: bool
    has_names: bool
    as_json: bool
    connect_timeout_s: float
    words: tuple[str, ...]
    given: frozenset[str] = frozenset()
    """The fields whose flags were typed: what a job file says does not replace them."""
    is_file_meant: bool = False
    """Whether `words` may name a job file: they do not stand behind `--`."""


def carry_out(flags: RunFlags, output: Output) -> int:
    """Starts the job and watches it; returns its exit code, or 0 with --detach and --dry-run.

    Raises ClusterctlError if it cannot be started; then nothing of it is left.
    """
    if flags.is_file_meant and flags.words[-1:] and flags.words[0].endswith((".yaml", ".yml")):
        flags = with_job_file(flags)
    start = _start(flags, output)
    if flags.is_dry_run:
        _show_plan(start.planned(), output, as_json=flags.as_json)
        return 0
    _agree(start.snapshot, flags, output)
    spec = start.begin()
    name = spec["job"]
    if flags.as_json:
        output.json({"job": name, "is_started": True}, is_line=True)
    output.note(f"{name}: started on {len(spec['members'])} of {len(start.nodes.inventory.nodes)} nodes")
    if flags.is_detached:
        output.note(f"  next: clusterctl job attach {name}")
        return 0
    attached = kept_attached(start.nodes, start.request.nodes, spec, output)
    return attached.watch(output, as_json=flags.as_json, has_names=flags.has_names)


def _start(flags: RunFlags, output: Output) -> JobStart:
    chosen = chosen_launch(flags.words, flags.launcher)
    environment, from_file = read_env_file(flags.env_file)
    secrets = {**from_file, **_secret_values(flags.secrets)}
    snapshot = take_snapshot(flags.workdir, including=flags.including)
    requirements = None if flags.requirements is None else sent_file(flags.requirements, snapshot)
    locked = locked_by_uv(requirements, snapshot)
    refuse_missing_script(chosen.command, snapshot)
    inventory = chosen_cluster(flags.cluster)
    request = JobRequest(
        inventory=inventory,
        nodes=chosen_rows(inventory, flags.node),
        name=_job_name(flags.name, chosen.command),
        launch=chosen,
        nproc=_checked_nproc(flags.nproc),
        gpus=flags.gpus,
        environment={**environment, **flags.env},
        secrets=tuple(secrets),
        python=flags.python,
        requirements=requirements,
        lock=None if locked is None else locked.text,
        requires_python="" if locked is None else locked.requires_python,
        setup=flags.setup,
        image=None if flags.image is None else checked_image(flags.image),
        timeout_s=flags.timeout_s,
        grace_s=flags.grace_s,
        is_sudo=flags.is_sudo,
        is_shared_wanted=True,
        by=started_by(),
    )
    nodes = job_nodes(inventory, connect_timeout_s=flags.connect_timeout_s)
    return JobStart(
        request=request,
        nodes=nodes,
        snapshot=snapshot,
        secrets=secrets,
        registry_login=registry_login(flags.registry_secret, flags.image),
        wait_s=flags.wait_s or 0.0,
        tell=output.note,
    )


def with_job_file(flags: RunFlags) -> RunFlags:
    """The flags, with what the job file says in place of those that were not typed. Raises ConfigError, UsageError."""
    path, *rest = flags.words
    if rest:
        why = f"{rest[0]!r} after {path}: a job file has its own command; to run a script of that name, write -- first"
        raise UsageError(why, hint=HINT)
    job_file = importlib.import_module("clusterctl.jobs.job_file")  # loaded on use: pydantic takes 50 ms
    read: Callable[[Path], dict[str, Any]] = job_file.read_job_file
    found = read(Path(path))
    return replace(flags, **{name: value for name, value in found.items() if name not in flags.given})


def sent_file(path: Path, snapshot: Snapshot) -> str:
    """The file's path relative to the folder that is sent. Raises UsageError if the file is not sent with it."""
    try:
        name = (snapshot.folder / path).resolve().relative_to(snapshot.folder.resolve()).as_posix()
    except ValueError as e:
        raise UsageError(f"--requirements {path}: not in the folder that is sent, {snapshot.folder}", hint=HINT) from e
    if name not in snapshot.files:
        why = "git ignores it" if (snapshot.folder / path).exists() else f"not there in {snapshot.folder}"
        raise UsageError(f"--requirements {path}: {why}", hint=HINT)
    if not name.endswith(".txt") and PurePosixPath(name).name != PROJECT:
        why = f"--requirements {path}: neither a requirements.txt of pip's nor a {PROJECT} with its {LOCK}"
        raise UsageError(why, hint=HINT)
    return name


def locked_by_uv(requirements: str | None, snapshot: Snapshot) -> UvLock | None:
    """What uv has locked, if `requirements` is a pyproject.toml; None otherwise. Raises UsageError."""
    if requirements is None or PurePosixPath(requirements).name != PROJECT:
        return None
    return read_uv_lock(snapshot.folder / requirements)


def refuse_missing_script(command: Sequence[str], snapshot: Snapshot) -> None:
    """Raises UsageError for a .py that is not among the files that are sent; an absolute path is not checked."""
    script = command[0]
    if not script.endswith(".py") or script.startswith("/"):
        return
    if os.path.normpath(script) not in snapshot.files:
        if (snapshot.folder / script).exists():
            why = f"{script}: git ignores it, so it does not go to the nodes"
        else:
            why = f"there is no {script} in {snapshot.folder.absolute()}{did_you_mean(script, snapshot.files)}"
        raise UsageError(why, hint="clusterctl run --workdir DIR -- ...")


def _job_name(given: str | None, command: Sequence[str]) -> str:
    return default_name(command, datetime.now(UTC), token_hex(2)) if given is None else checked_name(given)


def _checked_nproc(text: str) -> str:
    if text != AUTO and not (text.isascii() and text.isdigit() and 0 < int(text) < 10_000):
        raise UsageError(f"--nproc {text!r}: write how many processes a node runs, or auto", hint=HINT)
    return text


def _secret_values(names: Sequence[str]) -> dict[str, str]:
    missing = [name for name in names if name not in os.environ]
    if missing:
        raise UsageError(f"--secret {missing[0]}: not in this computer's environment", hint=f"export {missing[0]}=…")
    return {name: os.environ[name] for name in names}


def _agree(snapshot: Snapshot, flags: RunFlags, output: Output) -> None:
    """Asks before more than `ASK_BYTES` are sent. Raises UsageError unless the person agrees."""
    if snapshot.size_bytes <= ASK_BYTES or flags.is_agreed:
        return
    size = f"{snapshot.folder}: {snapshot.size_bytes // MIB:,} MiB in {len(snapshot.files)} files"
    if not output.confirm(f"{size}. Send that to every node?"):
        raise UsageError(f"{size} would go to every node", hint="clusterctl run --yes, or a .gitignore")


def _show_plan(spec: Mapping[str, Any], output: Output, *, as_json: bool) -> None:
    """Shows each node's argv and what the job sets in its environment."""
    for node_rank, member in enumerate(spec["members"]):
        folder = f"/var/lib/clusterctl/jobs/{spec['job']}"
        argv = launchers.argv(spec, node_rank, RANK_PARENT, folder)
        environment = launch.environment(spec, node_rank, {}, folder)
        if as_json:
            row = {"slot": member["slot"], "node": member["name"], "argv": argv, "environment": environment}
            output.json(row, is_line=True)
            continue
        where = f", in a container of {spec['image']}" if spec["image"] else ""
        output.data(f"Node {member['slot']} ({member['name']}){where}")
        if not argv:
            output.data("  (what mpirun asks for)")
        for words in argv:
            output.data(f"  {shlex.join(words)}")
        for name, value in environment.items():
            output.data(f"  {name}={shlex.quote(value)}")
