"""What `workflow submit` refuses before anything is started: by the file, and by what the nodes are. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterctl_infra.errors import ConfigError

from clusterctl.jobs.spec import IMAGE
from clusterctl.workflows.buckets import BucketMount, unmounted
from clusterctl.workflows.loading import LoadedWorkflow
from clusterctl.workflows.placement import Room, unfit
from clusterctl.workflows.task_job import needs_share

ON_HOST_HINT = "clusterctl workflow submit FILE --on-host"
SHARED_STORAGE = "cluster.yaml, storage: [{mount: /shared, efs: {}}]; docs/config.md"
BUCKETS = "cluster.yaml, storage: [{mount: /data, s3: {bucket: …, writable: true}}]; docs/config.md"


def credentials_of(loaded: LoadedWorkflow, environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Task → its secret variables, from this computer's environment. Raises ConfigError with all that are missing."""
    found: dict[str, dict[str, str]] = {}
    missing = []
    for task in loaded.workflow.all_tasks():
        names = [name for held in task.credentials.values() if not isinstance(held, str) for name in held]
        missing += [f"  task {task.name}: {name}" for name in names if name not in environ]
        found[task.name] = {name: environ[name] for name in names if name in environ}
    if missing:
        raise ConfigError(
            f"{loaded.source}: credentials are not in this computer's environment, nothing was started",
            problems=missing,
            hint=f"export {missing[0].rpartition(' ')[2]}=…",
        )
    return found


def refuse_unfit(
    loaded: LoadedWorkflow, rooms: Sequence[Room], *, where: str, type_name: str | None, hint: str
) -> None:
    """Raises ConfigError where the nodes could not take its tasks even if nobody else used them."""
    problems = unfit(loaded.workflow, rooms, type_name or "of an unknown type")
    if problems:
        raise ConfigError(
            f"{loaded.source}: it does not fit on {where}, nothing was started",
            problems=[f"  {each}" for each in problems],
            hint=hint,
        )


def refuse_unshared(loaded: LoadedWorkflow, share: str | None, *, where: str, hint: str) -> None:
    """Raises ConfigError where it needs shared storage, and there is none."""
    if share is None and (found := needs_share(loaded)):
        raise ConfigError(
            f"{loaded.source}: {where} has no shared storage ({SHARED_STORAGE}), nothing was started",
            problems=[f"  {each} lie there" for each in found],
            hint=hint,
        )


def refuse_unmounted(loaded: LoadedWorkflow, mounts: Sequence[BucketMount], *, where: str, hint: str) -> None:
    """Raises ConfigError for URLs in buckets that nodes have no mount of, nor rights to."""
    if found := list(unmounted(loaded.workflow, mounts)):
        raise ConfigError(
            f"{loaded.source}: {where} does not mount what these URLs need ({BUCKETS}), nothing was started",
            problems=[f"  {each}" for each in found],
            hint=hint,
        )


def refuse_odd_images(loaded: LoadedWorkflow) -> None:
    """Raises ConfigError where an image has no name that an engine could take."""
    odd = [task for task in loaded.workflow.all_tasks() if IMAGE.fullmatch(task.image) is None]
    if odd:
        raise ConfigError(
            f"{loaded.source}: these are no names of images; nothing was started",
            problems=[f"  task {task.name}: {task.image!r}" for task in odd],
            hint=ON_HOST_HINT,
        )
