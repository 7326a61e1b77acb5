"""A job's image on its nodes before the job has them: fetched where it is not there, and the same one everywhere."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence

from clusterctl_infra.errors import ClusterctlError, UsageError
from clusterctl_infra.outputs import InventoryNode

from clusterctl.jobs.node_answers import JobNodes, refuse_errors
from clusterctl.on_node.job import image_pull
from clusterctl.text.node_set import fold_numbers

HINT = "clusterctl run --help"
PULL_S = image_pull.PULL_S + 100.0
"""A little longer than a node takes before it gives an image up."""


def registry_login(name: str | None, image: str | None) -> str:
    """USER:PASSWORD from the variable of this name; empty where none is named. Raises UsageError, without the value."""
    if name is None:
        return ""
    if image is None:
        raise UsageError(f"--registry-secret {name} is for the registry of --image, and there is none", hint=HINT)
    return login_in(name, os.environ)


def login_in(name: str, environ: Mapping[str, str], *, option: str = "--registry-secret ") -> str:
    """USER:PASSWORD from the variable of this name. Raises UsageError, without the value."""
    if name not in environ:
        told = f"{option}{name}: not in this computer's environment"
        raise UsageError(told, hint=f"export {name}=USER:PASSWORD")
    user, colon, password = environ[name].partition(":")
    if not (user and colon and password):
        told = f"{option}{name}: its value is not USER:PASSWORD"
        raise UsageError(told, hint=f"export {name}=USER:PASSWORD")
    return environ[name]


def fetch_image(
    image: str,
    nodes: JobNodes,
    members: Sequence[InventoryNode],
    *,
    name: str,
    tell: Callable[[str], None],
    login: str = "",
) -> str:
    """The image's id, the same on all of these nodes. `name` is the job's, or the workflow's.

    `login`: USER:PASSWORD for the image's registry, which no argument and no file of this computer shows.
    Raises NotReached, ClusterctlError.
    """
    tell(f"{name}: fetches {image} where a node does not have it")
    if login:
        with tempfile.TemporaryFile() as stream:
            stream.write(json.dumps({"login": login}).encode() + b"\n")
            stream.seek(0)
            answers = nodes.ask(members, "pull", image, "yes", stdin=stream, timeout_s=PULL_S)
    else:
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
