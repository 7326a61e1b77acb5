"""Which node each task of a group gets, by what the task needs and what the nodes have. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from clusterctl_infra.catalog.instance import InstanceType
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.text.quantities import count
from clusterctl.workflows.model import Resources, Task, Workflow

MIB_PER_GB = 10**9 / 2**20


@dataclass(frozen=True, kw_only=True)
class NodeCapacity:
    """What one node has for tasks. A value that is None is not known, and then not compared."""

    node: InventoryNode
    gpus: int
    free_gpus: int
    is_free: bool
    """Whether no job holds any part of it."""
    cpus: float | None
    memory_mib: int | None
    storage_mib: int | None


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A task and its node."""

    task: Task
    node: InventoryNode
    gpus: int | None
    """How many of the node's GPUs the task gets; None: the whole node."""


class DoesNotFit(Exception):
    """A group does not fit on the nodes; the text is a sentence that says why."""


def capacities_of(inventory: Inventory, row: InstanceType | None) -> tuple[NodeCapacity, ...]:
    """All nodes of the cluster, as if nobody used them. `row`: their type in the catalog, if it is there."""
    return tuple(
        capacity_of(node, gpus=inventory.gpus_per_node, row=row)
        for node in sorted(inventory.nodes, key=lambda node: node.slot)
    )


def capacity_of(node: InventoryNode, *, gpus: int, row: InstanceType | None) -> NodeCapacity:
    """What the node has, as if nobody used it."""
    return NodeCapacity(
        node=node,
        gpus=gpus,
        free_gpus=gpus,
        is_free=True,
        cpus=None if row is None else float(row.vcpus),
        memory_mib=None if row is None else row.memory_mib,
        storage_mib=None if row is None or not row.nvme_gb else int(row.nvme_gb * MIB_PER_GB),
    )


def unfit(workflow: Workflow, capacities: Sequence[NodeCapacity], type_name: str) -> list[str]:
    """A sentence for each task and group that these nodes could not take even if nobody else used them."""
    found = []
    for group in workflow.all_groups():
        too_large = []
        for task in group.tasks:
            too_much = [_too_much(workflow.resources_of(task), capacity) for capacity in capacities]
            if all(too_much):
                too_large.append(f"task {task.name}: {too_much[0]} of a node ({type_name})")
        found += too_large
        if too_large:
            continue
        try:
            place(group.tasks, workflow.resources, capacities)
        except DoesNotFit as e:
            found.append(f"group {group.name}: {e}")
    return found


def place(
    tasks: Sequence[Task],
    resources: Mapping[str, Resources],
    capacities: Sequence[NodeCapacity],
    *,
    avoided: Collection[int] = (),
) -> tuple[Placed, ...]:
    """A node for each task, in the tasks' order; `avoided` slots are taken only if nothing else fits.

    Tasks are spread over the nodes, the emptiest node first, and share a node by its GPUs once every node has one. If
    they do not fit that way, the tasks with the most GPUs go first, and each node is filled before the next.
    Raises DoesNotFit.
    """
    why: DoesNotFit | None = None
    by_size = sorted(tasks, key=lambda task: -_needs(task, resources).gpu)
    for order, is_spread in ((tasks, True), (by_size, False)):
        try:
            found = _placed(order, resources, capacities, avoided, is_spread=is_spread)
            return tuple(found[task.name] for task in tasks)
        except DoesNotFit as e:
            why = why or e
    raise why or DoesNotFit("there are no nodes")


def _placed(
    tasks: Sequence[Task],
    resources: Mapping[str, Resources],
    capacities: Sequence[NodeCapacity],
    avoided: Collection[int],
    *,
    is_spread: bool,
) -> dict[str, Placed]:
    used: dict[int, list[Resources]] = {capacity.node.slot: [] for capacity in capacities}
    found: dict[str, Placed] = {}
    for task in tasks:
        needs = _needs(task, resources)
        fitting = [capacity for capacity in capacities if _fits(needs, capacity, used[capacity.node.slot])]
        if not fitting:
            raise DoesNotFit(_why_not(task, tasks, needs, capacities))

        def preference(capacity: NodeCapacity) -> tuple[bool, int, int]:
            taken = len(used[capacity.node.slot])
            return (capacity.node.slot in avoided, taken if is_spread else -taken, capacity.node.slot)

        capacity = min(fitting, key=preference)
        used[capacity.node.slot].append(needs)
        found[task.name] = Placed(task=task, node=capacity.node, gpus=None if _is_whole(needs, capacity) else needs.gpu)
    return found


def _fits(needs: Resources, capacity: NodeCapacity, others: Sequence[Resources]) -> bool:
    if _too_much(needs, capacity):
        return False
    if _is_whole(needs, capacity):
        return capacity.is_free and not others
    if any(_is_whole(other, capacity) for other in others):
        return False
    sums = [*others, needs]
    return (
        sum(each.gpu for each in sums) <= capacity.free_gpus
        and _is_within(sum(each.cpu for each in sums), capacity.cpus)
        and _is_within(sum(each.memory for each in sums), capacity.memory_mib)
        and _is_within(sum(each.storage for each in sums), capacity.storage_mib)
    )


def _is_whole(needs: Resources, capacity: NodeCapacity) -> bool:
    """Whether the task gets the node alone: it wants all of its GPUs, or none at all. Nodes are shared by GPUs only."""
    return needs.gpu == 0 or needs.gpu == capacity.gpus


def _needs(task: Task, resources: Mapping[str, Resources]) -> Resources:
    return resources.get(task.resource, Resources())


def _is_within(wanted: float, has: float | None) -> bool:
    return has is None or wanted <= has


def _too_much(needs: Resources, capacity: NodeCapacity) -> str:
    """`gpu: 16 is more than the 8`; empty if the task would fit on the node alone."""
    rows = (
        ("gpu", needs.gpu, capacity.gpus, ""),
        ("cpu", needs.cpu, capacity.cpus, ""),
        ("memory", needs.memory, capacity.memory_mib, "Mi"),
        ("storage", needs.storage, capacity.storage_mib, "Mi"),
    )
    for name, wanted, has, unit in rows:
        if has is not None and wanted > has:
            return f"{name}: {wanted:g}{unit} is more than the {has:g}{unit}"
    return ""


def _why_not(task: Task, tasks: Sequence[Task], needs: Resources, capacities: Sequence[NodeCapacity]) -> str:
    what = count(needs.gpu, "GPU") if needs.gpu else "a node of its own, as it names no GPUs"
    free = sum(capacity.is_free for capacity in capacities)
    return (
        f"no node is left for {task.name}, which needs {what}: the group has {count(len(tasks), 'task')} "
        f"at the same time, and of {count(len(capacities), 'node')} {free} {'is' if free == 1 else 'are'} free"
    )
