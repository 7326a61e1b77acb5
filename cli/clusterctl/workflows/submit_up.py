"""`workflow submit --up`: brings a stack up as `up` does, runs the workflow there, and says what goes on billing.

Loaded on use.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

from clusterctl_infra.catalog.instance import InstanceType
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.names import REHEARSAL_SUFFIX, USUAL_STACK_NAME
from clusterctl_infra.outputs import Inventory, InventoryNode, read_inventory
from clusterctl_infra.plan.model import ClusterPlan
from clusterctl_infra.plan.storage_model import BucketPlan, EfsPlan, LustrePlan

from clusterctl.engine.stack import read_stack
from clusterctl.engine.stack_plan import plan_stack, refuse_problems
from clusterctl.home import Home, home_directory
from clusterctl.lifecycle.up import bring_up
from clusterctl.lifecycle.up_request import UpRequest
from clusterctl.output import Output
from clusterctl.text.next_commands import down_again, stack_words
from clusterctl.text.quantities import clock, count, duration, usd
from clusterctl.workflows.buckets import BucketMount
from clusterctl.workflows.loading import LoadedWorkflow
from clusterctl.workflows.placement import NodeCapacity, capacity_of
from clusterctl.workflows.submit import StackToBringUp, SubmitFlags, submit
from clusterctl.workflows.submit_checks import (
    credentials_of,
    refuse_odd_tasks,
    refuse_unfit,
    refuse_unmounted,
    refuse_unshared,
    registry_logins,
)


def submit_on_stack(loaded: LoadedWorkflow, stack: StackToBringUp, flags: SubmitFlags, output: Output) -> int:
    """Brings the cluster up, runs the workflow on it, and returns the workflow's exit code. Raises ClusterctlError.

    What is wrong with the workflow's file itself is found before the cluster costs anything.
    """
    credentials_of(loaded, os.environ)
    refuse_odd_tasks(loaded, is_on_host=flags.is_on_host)
    registry_logins(loaded, flags.registry_secrets, os.environ)
    home = home_directory(os.environ)
    cluster = planned_cluster(loaded, stack, home=home, now=datetime.now(UTC).replace(microsecond=0))
    _bring_up(stack, output)
    inventory = read_inventory(home.inventory_file(cluster))
    try:
        return submit(loaded, inventory, flags, output)
    finally:
        output.note(goes_on(inventory, now=datetime.now(UTC)))


def planned_cluster(loaded: LoadedWorkflow, stack: StackToBringUp, *, home: Home, now: datetime) -> str:
    """The name of the cluster that the stack would make. Raises ConfigError if it could not run the workflow."""
    read = read_stack(stack.folder, rehearse=stack.is_rehearsed)
    planned = plan_stack(read, load_catalog(home.prices_file), home=home, now=now, rehearse=stack.is_rehearsed)
    refuse_problems(planned.plan, read, overrides=planned.overrides)
    capacities = capacities_of_plan(planned.plan, planned.instance_type)
    words = stack_words(stack.folder, stack_name=USUAL_STACK_NAME, rehearse=stack.is_rehearsed)
    where, hint = read.source, f"clusterctl plan {words}"
    refuse_unfit(loaded, capacities, where=where, type_name=planned.plan.instance_type, hint=hint)
    has_bucket = planned.config.workflow_storage is not None
    refuse_unshared(loaded, shared_mount(planned.plan), has_bucket=has_bucket, where=where, hint=hint)
    refuse_unmounted(loaded, planned_buckets(planned.plan), where=where, hint=hint)
    return planned.plan.name + (REHEARSAL_SUFFIX if planned.is_rehearsal else "")


def capacities_of_plan(plan: ClusterPlan, row: InstanceType) -> tuple[NodeCapacity, ...]:
    """The nodes of the plan, as if nobody used them. `row`: their type in the catalog."""
    nodes = (
        InventoryNode(
            slot=slot.slot,
            rank=slot.rank,
            name=slot.name,
            private_ip=slot.private_ip,
            host_public_key=slot.host_public_key,
        )
        for slot in plan.slots
    )
    return tuple(capacity_of(node, gpus=plan.gpus_per_node, row=row) for node in nodes)


def shared_mount(plan: ClusterPlan) -> str | None:
    """The path of the first file system that all nodes will be able to write to; None: there is none."""
    shared = (each.mount for each in plan.storage if isinstance(each, LustrePlan | EfsPlan) and each.writable)
    return next(shared, None)


def planned_buckets(plan: ClusterPlan) -> tuple[BucketMount, ...]:
    """The buckets that all nodes will have mounted."""
    return tuple(
        BucketMount(path=each.mount, bucket=each.bucket, prefix=each.prefix, is_writable=each.writable)
        for each in plan.storage
        if isinstance(each, BucketPlan)
    )


def goes_on(inventory: Inventory, *, now: datetime) -> str:
    """A sentence about the cluster that is left when the workflow is over: until when, at what price, what ends it."""
    deadline = datetime.fromisoformat(inventory.deadline)
    costs = f"{usd(inventory.usd_per_hour)}/h" + (" (simulated)" if inventory.rehearsal else "")
    nodes = f"{inventory.cluster}: {count(len(inventory.nodes), 'node')}"
    if deadline <= now:
        return f"{nodes}: ended at {clock(deadline, now)}, the deadline\n  next: {down_again(inventory)}"
    until = f"until {clock(deadline, now)}, in {duration(deadline - now)}"
    return f"{nodes} still running, {costs} {until} at the latest\n  next: {down_again(inventory)}"


def _bring_up(stack: StackToBringUp, output: Output) -> None:
    """Brings the stack up. Raises ClusterctlError; the person is told that the workflow was not submitted."""
    request = UpRequest(
        stack_dir=stack.folder,
        stack_name=USUAL_STACK_NAME,
        rehearse=stack.is_rehearsed,
        nodes=None,
        is_agreed=stack.is_agreed,
        ready_timeout_s=None,
    )
    try:
        bring_up(request, output, os.environ)
    except ClusterctlError:
        output.note("the workflow was not submitted")
        raise
