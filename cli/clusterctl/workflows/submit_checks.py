"""The reasons for which `workflow submit` refuses a workflow before it starts anything. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterctl_infra.errors import ConfigError, UsageError
from clusterctl_infra.nearest import did_you_mean
from clusterctl_infra.outputs import Inventory

from clusterctl.jobs.images import login_in
from clusterctl.jobs.spec import IMAGE
from clusterctl.on_node.job.image_pull import registry_of
from clusterctl.workflows.buckets import BucketMount, mounted_path, unmounted
from clusterctl.workflows.loading import LoadedWorkflow
from clusterctl.workflows.placement import NodeCapacity, unfit
from clusterctl.workflows.task_job import needs_share

SUBMIT_HINT = "clusterctl workflow --help"
ON_HOST_HINT = "clusterctl workflow submit FILE --on-host"
SHARED_STORAGE = "cluster.yaml, storage: [{mount: /shared, efs: {}}] or workflow_storage: s3://…; docs/config.md"
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
    loaded: LoadedWorkflow, capacities: Sequence[NodeCapacity], *, where: str, type_name: str | None, hint: str
) -> None:
    """Raises ConfigError if the nodes could not take the workflow's tasks even if nobody else used them."""
    problems = unfit(loaded.workflow, capacities, type_name or "of an unknown type")
    if problems:
        raise ConfigError(
            f"{loaded.source}: it does not fit on {where}, nothing was started",
            problems=[f"  {each}" for each in problems],
            hint=hint,
        )


def refuse_unshared(loaded: LoadedWorkflow, share: str | None, *, has_bucket: bool, where: str, hint: str) -> None:
    """Raises ConfigError if the workflow needs shared storage, and there is neither a file system nor a bucket."""
    if share is None and not has_bucket and (found := needs_share(loaded)):
        raise ConfigError(
            f"{loaded.source}: {where} has no storage for workflows ({SHARED_STORAGE}), nothing was started",
            problems=[f"  {each} lie there" for each in found],
            hint=hint,
        )


def refuse_unmounted(loaded: LoadedWorkflow, mounts: Sequence[BucketMount], *, where: str, hint: str) -> None:
    """Raises ConfigError for URLs that no mount covers, or that a task writes to and nodes mount read-only."""
    if found := list(unmounted(loaded.workflow, mounts)):
        raise ConfigError(
            f"{loaded.source}: {where} does not mount what these URLs need ({BUCKETS}), nothing was started",
            problems=[f"  {each}" for each in found],
            hint=hint,
        )


def workflow_bucket(inventory: Inventory, mounts: Sequence[BucketMount]) -> str | None:
    """The path at which nodes mount `workflow_storage`; None if the cluster has none.

    Raises ConfigError if the cluster has one that its nodes do not mount, or not for writing.
    """
    if inventory.workflow_storage is None:
        return None
    path = mounted_path(inventory.workflow_storage, mounts, is_written=True)
    if path is None:
        why = f"{inventory.cluster}: its nodes do not mount workflow_storage {inventory.workflow_storage}"
        raise ConfigError(f"{why} yet, nothing was started", hint=f"clusterctl status --cluster {inventory.cluster}")
    return path


def refuse_moved_mounts(loaded: LoadedWorkflow) -> None:
    """Raises ConfigError for volume mounts that change a folder's path, which --on-host cannot do."""
    moved = [
        f"  task {task.name}: {source}:{target}"
        for task in loaded.workflow.all_tasks()
        for source, target in task.volume_mounts
        if source != target
    ]
    if moved:
        raise ConfigError(
            f"{loaded.source}: with --on-host a task sees the node's own folders, each at its own place; nothing was "
            "started",
            problems=moved,
            hint="clusterctl workflow submit FILE, without --on-host",
        )


def registry_logins(loaded: LoadedWorkflow, given: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Registry → USER:PASSWORD, from the variables that `--registry-secret` names.

    `NAME` is for the registry of all images, `REGISTRY=NAME` for one of several. Raises UsageError, which never shows a
    value.
    """
    registries = sorted({registry_of(task.image) for task in loaded.workflow.all_tasks()})
    found: dict[str, str] = {}
    for each in given:
        registry, equals, name = each.rpartition("=")
        if not equals and len(registries) > 1:
            message = f"--registry-secret {name}: the images come from {', '.join(registries)}: say which one it is for"
            raise UsageError(message, hint=f"clusterctl workflow submit FILE --registry-secret {registries[0]}={name}")
        registry = registry if equals else registries[0]
        if registry not in registries:
            near = did_you_mean(registry, registries) or f"; there are {', '.join(registries)}"
            raise UsageError(f"--registry-secret {each}: no image comes from {registry!r}{near}", hint=SUBMIT_HINT)
        if registry in found:
            raise UsageError(f"--registry-secret {each}: {registry} has a secret already", hint=SUBMIT_HINT)
        found[registry] = login_in(name, environ)
    return found


def refuse_odd_tasks(loaded: LoadedWorkflow, *, is_on_host: bool) -> None:
    """Raises ConfigError if a task asks for a moved mount with --on-host, or without it for an impossible image."""
    if is_on_host:
        refuse_moved_mounts(loaded)
    else:
        refuse_odd_images(loaded)


def refuse_odd_images(loaded: LoadedWorkflow) -> None:
    """Raises ConfigError if the name of an image is one that no engine accepts."""
    odd = [task for task in loaded.workflow.all_tasks() if IMAGE.fullmatch(task.image) is None]
    if odd:
        raise ConfigError(
            f"{loaded.source}: these are not image names; nothing was started",
            problems=[f"  task {task.name}: {task.image!r}" for task in odd],
            hint=ON_HOST_HINT,
        )
