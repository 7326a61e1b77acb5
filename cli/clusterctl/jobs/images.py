"""Fetches a job's image to its nodes before the job holds them, and checks that all have the same one."""

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
"""A little longer than the node's own limit for fetching an image."""


def registry_login(name: str | None, image: str | None) -> str:
    """USER:PASSWORD from the variable called `name`; empty if `name` is None.

    Raises UsageError, which never shows the value.
    """
    if name is None:
        return ""
    if image is None:
        raise UsageError(f"--registry-secret {name} is for the registry of --image, and there is none", hint=HINT)
    return login_in(name, os.environ)


def login_in(name: str, environ: Mapping[str, str], *, option: str = "--registry-secret ") -> str:
    """USER:PASSWORD from the variable called `name`. Raises UsageError, which never shows the value."""
    if name not in environ:
        why = f"{option}{name}: not in this computer's environment"
        raise UsageError(why, hint=f"export {name}=USER:PASSWORD")
    user, colon, password = environ[name].partition(":")
    if not (user and colon and password):
        why = f"{option}{name}: its value is not USER:PASSWORD"
        raise UsageError(why, hint=f"export {name}=USER:PASSWORD")
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
    """Fetches the image where a node lacks it, and returns its id, which is the same on all of these nodes.

    `name`: the job's or the workflow's, for messages. `login`: USER:PASSWORD for the image's registry; nodes get it
    on stdin, so no argument list and no named file shows it. Raises NotReached, ClusterctlError.
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
    """The id that all slots have. Raises ClusterctlError where nodes have different images under this name."""
    slots_by_id = {found: [slot for slot in sorted(ids) if ids[slot] == found] for found in ids.values()}
    if len(slots_by_id) == 1:
        return next(iter(slots_by_id))
    images = "; ".join(f"{found[:19]} on {fold_numbers(slots)}" for found, slots in sorted(slots_by_id.items()))
    hint = f"clusterctl ssh --sudo docker pull {image}"
    raise ClusterctlError(f"{image} is not the same image on all nodes: {images}", hint=hint)
