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
class Room:
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


class NoRoom(Exception):
    """A group does not fit on the nodes; the text is a sentence that says why."""


def rooms_of(inventory: Inventory, row: InstanceType | None) -> tuple[Room, ...]:
    """All nodes of the cluster, as if nobody used them. `row`: their type in the catalog, if it is there."""
    return tuple(
        room_of(node, gpus=inventory.gpus_per_node, row=row)
        for node in sorted(inventory.nodes, key=lambda node: node.slot)
    )


def room_of(node: InventoryNode, *, gpus: int, row: InstanceType | None) -> Room:
    """What the node has, as if nobody used it."""
    return Room(
        node=node,
        gpus=gpus,
        free_gpus=gpus,
        is_free=True,
        cpus=None if row is None else float(row.vcpus),
        memory_mib=None if row is None else row.memory_mib,
        storage_mib=None if row is None or not row.nvme_gb else int(row.nvme_gb * MIB_PER_GB),
    )


def unfit(workflow: Workflow, rooms: Sequence[Room], type_name: str) -> list[str]:
    """A sentence for each task and group that these nodes could not take even if nobody else used them."""
    found = []
    for group in workflow.all_groups():
        alone = []
        for task in group.tasks:
            too_much = [_too_much(workflow.resources_of(task), room) for room in rooms]
            if all(too_much):
                alone.append(f"task {task.name}: {too_much[0]} of a node ({type_name})")
        found += alone
        if alone:
            continue
        try:
            place(group.tasks, workflow.resources, rooms)
        except NoRoom as e:
            found.append(f"group {group.name}: {e}")
    return found


def place(
    tasks: Sequence[Task], resources: Mapping[str, Resources], rooms: Sequence[Room], *, avoided: Collection[int] = ()
) -> tuple[Placed, ...]:
    """A node for each task, in the tasks' order; `avoided` slots are taken only if nothing else fits. Raises NoRoom.

    Tasks are spread over the nodes, the emptiest node first, and share a node by its GPUs once every node has one. If
    they do not fit that way, the tasks with the most GPUs go first, and each node is filled before the next.
    """
    why: NoRoom | None = None
    by_size = sorted(tasks, key=lambda task: -_needs(task, resources).gpu)
    for order, is_spread in ((tasks, True), (by_size, False)):
        try:
            found = _placed(order, resources, rooms, avoided, is_spread=is_spread)
            return tuple(found[task.name] for task in tasks)
        except NoRoom as e:
            why = why or e
    raise why or NoRoom("there are no nodes")


def _placed(
    tasks: Sequence[Task],
    resources: Mapping[str, Resources],
    rooms: Sequence[Room],
    avoided: Collection[int],
    *,
    is_spread: bool,
) -> dict[str, Placed]:
    used: dict[int, list[Resources]] = {room.node.slot: [] for room in rooms}
    found: dict[str, Placed] = {}
    for task in tasks:
        needs = _needs(task, resources)
        fitting = [room for room in rooms if _fits(needs, room, used[room.node.slot])]
        if not fitting:
            raise NoRoom(_no_room(task, tasks, needs, rooms))

        def preference(room: Room) -> tuple[bool, int, int]:
            taken = len(used[room.node.slot])
            return (room.node.slot in avoided, taken if is_spread else -taken, room.node.slot)

        room = min(fitting, key=preference)
        used[room.node.slot].append(needs)
        found[task.name] = Placed(task=task, node=room.node, gpus=None if _is_whole(needs, room) else needs.gpu)
    return found


def _fits(needs: Resources, room: Room, others: Sequence[Resources]) -> bool:
    if _too_much(needs, room):
        return False
    if _is_whole(needs, room):
        return room.is_free and not others
    if any(_is_whole(other, room) for other in others):
        return False
    sums = [*others, needs]
    return (
        sum(each.gpu for each in sums) <= room.free_gpus
        and _is_within(sum(each.cpu for each in sums), room.cpus)
        and _is_within(sum(each.memory for each in sums), room.memory_mib)
        and _is_within(sum(each.storage for each in sums), room.storage_mib)
    )


def _is_whole(needs: Resources, room: Room) -> bool:
    """Whether the task gets the node alone: it wants all of its GPUs, or none at all. Nodes are shared by GPUs only."""
    return needs.gpu == 0 or needs.gpu == room.gpus


def _needs(task: Task, resources: Mapping[str, Resources]) -> Resources:
    return resources.get(task.resource, Resources())


def _is_within(wanted: float, has: float | None) -> bool:
    return has is None or wanted <= has


def _too_much(needs: Resources, room: Room) -> str:
    """`gpu: 16 is more than the 8`; empty if the task would fit on the node alone."""
    rows = (
        ("gpu", needs.gpu, room.gpus, ""),
        ("cpu", needs.cpu, room.cpus, ""),
        ("memory", needs.memory, room.memory_mib, "Mi"),
        ("storage", needs.storage, room.storage_mib, "Mi"),
    )
    for name, wanted, has, unit in rows:
        if has is not None and wanted > has:
            return f"{name}: {wanted:g}{unit} is more than the {has:g}{unit}"
    return ""


def _no_room(task: Task, tasks: Sequence[Task], needs: Resources, rooms: Sequence[Room]) -> str:
    what = count(needs.gpu, "GPU") if needs.gpu else "a node of its own, as it names no GPUs"
    whole = sum(room.is_free for room in rooms)
    return (
        f"no node is left for {task.name}, which needs {what}: it has {count(len(tasks), 'task')} at the same time, "
        f"and of {count(len(rooms), 'node')} {whole} {'is' if whole == 1 else 'are'} free"
    )
