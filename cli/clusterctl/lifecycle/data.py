"""The file systems in a state that hold data: which, where, what they cost, and what may not happen to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.names import MOUNT_TAG, ON_DELETE_TAG
from clusterctl_infra.plan.storage import storage_plans
from clusterctl_infra.plan.storage_model import EfsPlan, LustrePlan, StoragePlan, is_retained

from clusterctl.engine.state import StackState, StateResource
from clusterctl.text.next_commands import edit
from clusterctl.text.quantities import count, usd

LUSTRE_TYPE = "aws:fsx/lustreFileSystem:LustreFileSystem"
EFS_TYPE = "aws:efs/fileSystem:FileSystem"
KINDS = {LUSTRE_TYPE: "FSx for Lustre", EFS_TYPE: "EFS"}
OTHERS = ("aws:s3/bucket", "aws:ebs/volume:")
"""Other types that hold data: clusterctl makes none of them, but a person's own program may."""


@dataclass(frozen=True, kw_only=True)
class StoredData:
    """One file system of the cluster's own."""

    urn: str
    id: str
    kind: str
    mount: str
    is_retained: bool
    size_gib: int | None
    """None: it grows with what is put in."""
    throughput: int | None
    deployment_type: str | None
    is_encrypted: bool | None
    kms_key: str | None
    """None: AWS's own key, or no encryption."""

    @property
    def named(self) -> str:
        """`/shared (FSx for Lustre, 4800 GiB, fs-0a…)`."""
        size = "" if self.size_gib is None else f"{self.size_gib} GiB, "
        return f"{self.mount} ({self.kind}, {size}{self.id})"


def data_in(state: StackState) -> tuple[StoredData, ...]:
    """The file systems that the cluster made; adopted ones are somebody else's."""
    return tuple(_stored(resource) for type in KINDS for resource in state.of_type(type) if not resource.is_external)


def kept_in(state: StackState, config: ClusterConfig, catalog: Catalog) -> tuple[StoredData, ...]:
    """The file systems that outlive the nodes: the last `up` marked them so, or cluster.yaml has said so since."""
    plans = {row.mount: row for row in storage_plans(config, catalog)}
    return tuple(
        file_system
        for file_system in data_in(state)
        if file_system.is_retained or _is_to_be_kept(file_system, plans.get(file_system.mount))
    )


def holds_data(state: StackState) -> bool:
    """Whether something in the state is to outlive the nodes."""
    return any(file_system.is_retained for file_system in data_in(state)) or bool(others_in(state))


def others_in(state: StackState) -> tuple[str, ...]:
    """Other resources of a person's own program, such as `Table users`: those that may hold data, and protected
    ones.
    """
    others = (resource for resource in state.resources if resource.is_custom and resource.type not in KINDS)
    return tuple(
        f"{resource.type.rpartition(':')[2]} {resource.urn.rpartition('::')[2]}"
        for resource in others
        if resource.is_protected or resource.type.startswith(OTHERS)
    )


def bill_lines(data: Sequence[StoredData], catalog: Catalog, *, region: str) -> list[str]:
    """What each costs for as long as it exists: `/shared (FSx for Lustre, 4800 GiB, fs-0a…): $1.38/h`."""
    return [f"{file_system.named}: {_bill(file_system, catalog, region)}" for file_system in data]


def refuse_harm(state: StackState, config: ClusterConfig, catalog: Catalog, *, source: str) -> None:
    """Raises ConfigError when the configuration would end a file system that is there, or make it anew and empty."""
    plans = {row.mount: row for row in storage_plans(config, catalog)}
    problems = [
        problem for file_system in data_in(state) for problem in _harm(file_system, plans.get(file_system.mount))
    ]
    if problems:
        raise ConfigError(
            f"{source}: {count(len(problems), 'change')} would lose data, nothing was changed",
            problems=[f"  {problem}" for problem in problems],
            hint=edit(source),
        )


def _harm(file_system: StoredData, plan: StoragePlan | None) -> Iterator[str]:
    if not _is_planned(file_system, plan):
        if file_system.is_retained:
            yield (
                f"{file_system.named} is not in cluster.yaml any more: write it back; to end it alone, write "
                "on_delete: delete, run clusterctl up, then take it out"
            )
        return
    if isinstance(plan, LustrePlan):
        if file_system.size_gib is not None and plan.size_gib < file_system.size_gib:
            yield f"{file_system.named} cannot shrink to {plan.size_gib} GiB: file systems only grow"
        if file_system.deployment_type != plan.deployment_type:
            was, is_now = file_system.deployment_type, plan.deployment_type
            yield f"{file_system.named} is {was} and cannot become {is_now}: take another mount"
    if (
        isinstance(plan, EfsPlan)
        and file_system.is_encrypted is not None
        and file_system.is_encrypted != plan.encrypted
    ):
        yield f"{file_system.named}: whether it is encrypted is decided when it is made: use another mount"
    if isinstance(plan, LustrePlan | EfsPlan) and file_system.kms_key != plan.kms_key:
        was = "AWS's own key" if file_system.kms_key is None else file_system.kms_key
        yield (
            f"{file_system.named} is encrypted with {was}, which cannot change: write kms_key as it was, or use "
            "another mount"
        )


def _is_to_be_kept(file_system: StoredData, plan: StoragePlan | None) -> bool:
    return plan is not None and _is_planned(file_system, plan) and is_retained(plan)


def _is_planned(file_system: StoredData, plan: StoragePlan | None) -> bool:
    """Whether the plan of its mount is still for this file system, not for one of another kind or an adopted one."""
    if isinstance(plan, LustrePlan):
        return file_system.kind == KINDS[LUSTRE_TYPE] and plan.adopted_id is None
    return isinstance(plan, EfsPlan) and file_system.kind == KINDS[EFS_TYPE] and plan.adopted_id is None


def _stored(resource: StateResource) -> StoredData:
    tags = resource.inputs.get("tags") or {}
    is_lustre = resource.type == LUSTRE_TYPE
    return StoredData(
        urn=resource.urn,
        id=resource.id,
        kind=KINDS[resource.type],
        mount=str(tags.get(MOUNT_TAG) or resource.urn.rpartition("::")[2]),
        is_retained=tags.get(ON_DELETE_TAG, "retain") == "retain",
        size_gib=int(resource.inputs.get("storageCapacity") or 0) if is_lustre else None,
        throughput=_whole(resource.inputs.get("perUnitStorageThroughput")),
        deployment_type=resource.inputs.get("deploymentType"),
        is_encrypted=resource.inputs.get("encrypted"),
        kms_key=resource.inputs.get("kmsKeyId"),
    )


def _bill(file_system: StoredData, catalog: Catalog, region: str) -> str:
    if file_system.size_gib is None:
        price = catalog.storage.efs.get(region)
        each = "" if price is None else f", {usd(price.stored_usd_per_gib_month)} a GiB and month"
        return f"bills what it holds{each}"
    hourly = catalog.storage.lustre_usd_per_hour(
        region, size_gib=file_system.size_gib, throughput=file_system.throughput
    )
    return "bills, at a price that is not known" if hourly is None else f"{usd(hourly)}/h"


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) else None
