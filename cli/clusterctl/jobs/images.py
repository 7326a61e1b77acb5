"""A job's image on its nodes before the job has them: fetched where it is not there, and the same one everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.outputs import InventoryNode

from clusterctl.jobs.node_answers import JobNodes, refuse_errors
from clusterctl.on_node.job import container
from clusterctl.text.node_set import fold_numbers

PULL_S = container.PULL_S + 100.0
"""A little longer than a node takes before it gives an image up."""


def fetch_image(
    image: str, nodes: JobNodes, members: Sequence[InventoryNode], *, name: str, tell: Callable[[str], None]
) -> str:
    """The image's id, the same on all of these nodes. `name` is the job's, or the workflow's.

    Raises NotReached, ClusterctlError.
    """
    tell(f"{name}: fetches {image} where a node does not have it")
    answers = nodes.ask(members, "pull", image, timeout_s=PULL_S)
    hint = f"clusterctl ssh --sudo docker pull {image}"
    refuse_errors(list(answers.values()), f"{name} was not started", hint=hint)
    return same_image(image, {slot: str(answer.words["image_id"]) for slot, answer in answers.items()})


def same_image(image: str, ids: Mapping[int, str]) -> str:
    """The id that all slots have. Raises ClusterctlError where an older image of the name is on some nodes."""
    slots_by_id = {found: [slot for slot in sorted(ids) if ids[slot] == found] for found in ids.values()}
    if len(slots_by_id) == 1:
        return next(iter(slots_by_id))
    told = "; ".join(f"{found[:19]} on {fold_numbers(slots)}" for found, slots in sorted(slots_by_id.items()))
    hint = f"clusterctl ssh --sudo docker pull {image}"
    raise ClusterctlError(f"{image} is not the same image on all nodes: {told}", hint=hint)
