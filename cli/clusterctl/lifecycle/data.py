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
"""What else holds data in a stack: clusterctl makes none, a person's own program may."""


@dataclass(frozen=True, kw_only=True)
class StoredData:
    """One file system of the cluster's own."""

    urn: str
    id: str
    kind: str
    mount: str
    is_retained: bool
    size_gib: int | None
    """None: as much as is put in."""
    throughput: int | None
    deployment_type: str | None
    is_encrypted: bool | None

    @property
    def named(self) -> str:
        """`/shared (FSx for Lustre, 4800 GiB, fs-0a…)`."""
        size = "" if self.size_gib is None else f"{self.size_gib} GiB, "
        return f"{self.mount} ({self.kind}, {size}{self.id})"


def data_in(state: StackState) -> tuple[StoredData, ...]:
    """The state's own file systems; adopted ones are somebody else's."""
    return tuple(_stored(one) for type in KINDS for one in state.of_type(type) if not one.is_external)


def kept_in(state: StackState, config: ClusterConfig, catalog: Catalog) -> tuple[StoredData, ...]:
    """Those that outlive the nodes: as the last `up` marked them, or as cluster.yaml says since."""
    plans = {row.mount: row for row in storage_plans(config, catalog)}
    return tuple(one for one in data_in(state) if one.is_retained or _is_to_be_kept(one, plans.get(one.mount)))


def holds_data(state: StackState) -> bool:
    """Something in the state is to outlive the nodes."""
    return any(one.is_retained for one in data_in(state)) or bool(others_in(state))


def others_in(state: StackState) -> tuple[str, ...]:
    """What else a person's own program keeps there, as `Table users`: what may hold data, and what is protected."""
    others = (one for one in state.resources if one.is_custom and one.type not in KINDS)
    return tuple(
        f"{one.type.rpartition(':')[2]} {one.urn.rpartition('::')[2]}"
        for one in others
        if one.is_protected or one.type.startswith(OTHERS)
    )


def bill_lines(data: Sequence[StoredData], catalog: Catalog, *, region: str) -> list[str]:
    """What each costs for as long as it exists: `/shared (FSx for Lustre, 4800 GiB, fs-0a…): $1.38/h`."""
    return [f"{one.named}: {_bill(one, catalog, region)}" for one in data]


def refuse_harm(state: StackState, config: ClusterConfig, catalog: Catalog, *, source: str) -> None:
    """Raises ConfigError when the configuration would end a file system that is there, or make it anew and empty."""
    plans = {row.mount: row for row in storage_plans(config, catalog)}
    problems = [problem for one in data_in(state) for problem in _harm(one, plans.get(one.mount))]
    if problems:
        raise ConfigError(
            f"{source}: {count(len(problems), 'change')} would lose data, nothing was changed",
            problems=[f"  {problem}" for problem in problems],
            hint=edit(source),
        )


def _harm(one: StoredData, plan: StoragePlan | None) -> Iterator[str]:
    if not _is_meant(one, plan):
        if one.is_retained:
            yield (
                f"{one.named} is not in cluster.yaml any more: write it back; to end it alone, write "
                "on_delete: delete, run clusterctl up, then take it out"
            )
        return
    if isinstance(plan, LustrePlan):
        if one.size_gib is not None and plan.size_gib < one.size_gib:
            yield f"{one.named} cannot shrink to {plan.size_gib} GiB: AWS lets file systems grow alone"
        if one.deployment_type != plan.deployment_type:
            yield f"{one.named} is {one.deployment_type} and cannot become {plan.deployment_type}: take another mount"
    if isinstance(plan, EfsPlan) and one.is_encrypted is not None and one.is_encrypted != plan.encrypted:
        yield f"{one.named}: encrypted is decided when it is made: take another mount"


def _is_to_be_kept(one: StoredData, plan: StoragePlan | None) -> bool:
    return plan is not None and _is_meant(one, plan) and is_retained(plan)


def _is_meant(one: StoredData, plan: StoragePlan | None) -> bool:
    """Whether the plan of the mount is still about this file system."""
    if isinstance(plan, LustrePlan):
        return one.kind == KINDS[LUSTRE_TYPE] and plan.adopted_id is None
    return isinstance(plan, EfsPlan) and one.kind == KINDS[EFS_TYPE] and plan.adopted_id is None


def _stored(one: StateResource) -> StoredData:
    tags = one.inputs.get("tags") or {}
    is_lustre = one.type == LUSTRE_TYPE
    return StoredData(
        urn=one.urn,
        id=one.id,
        kind=KINDS[one.type],
        mount=str(tags.get(MOUNT_TAG) or one.urn.rpartition("::")[2]),
        is_retained=tags.get(ON_DELETE_TAG, "retain") == "retain",
        size_gib=int(one.inputs.get("storageCapacity") or 0) if is_lustre else None,
        throughput=_whole(one.inputs.get("perUnitStorageThroughput")),
        deployment_type=one.inputs.get("deploymentType"),
        is_encrypted=one.inputs.get("encrypted"),
    )


def _bill(one: StoredData, catalog: Catalog, region: str) -> str:
    if one.size_gib is None:
        price = catalog.storage.efs.get(region)
        each = "" if price is None else f", {usd(price.stored_usd_per_gib_month)} a GiB and month"
        return f"bills what it holds{each}"
    hourly = catalog.storage.lustre_usd_per_hour(region, size_gib=one.size_gib, throughput=one.throughput)
    return "bills, at a price that is not known" if hourly is None else f"{usd(hourly)}/h"


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) else None
