"""The stack in the folder from which a known cluster was last run, and the errors if that folder has changed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import yaml
from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import Inventory

from clusterctl.engine.stack import Stack, read_stack
from clusterctl.engine.stacks_near import CLUSTER_FILE, STACK_FILES, stacks_near
from clusterctl.text.next_commands import edit, reap_cluster, stack_words


def stack_of_cluster(inventory: Inventory, *, files: Sequence[str] = STACK_FILES) -> Stack:
    """The stack that an inventory came from; `files`: what has to be in its folder.

    Raises UsageError saying what is gone.
    """
    if inventory.stack_dir is None:
        raise UsageError(
            f"the folder of {inventory.cluster}'s stack is not known on this computer: say where it is, once",
            hint=f"{_nodes_command('STACK', inventory)}  (STACK: the folder)",
        )
    folder = Path(inventory.stack_dir)
    if not folder.is_dir():
        raise _gone(inventory, folder)
    missing = next((file for file in files if not (folder / file).is_file()), None)
    if missing is not None:
        file = folder / missing
        message = f"{folder}, the folder of {inventory.cluster}'s stack, has no {missing}: put it back"
        raise UsageError(message, hint=edit(file) if missing == CLUSTER_FILE else f"ls -A {shlex.quote(str(folder))}")
    return read_stack(folder, name=inventory.stack_name, files=files)


def _gone(inventory: Inventory, folder: Path) -> UsageError:
    message = f"the folder of {inventory.cluster}'s stack, {folder}, is not there any more; nothing was changed"
    moved = next(
        (other for other in stacks_near(folder) if cluster_name_in(other / CLUSTER_FILE) == inventory.name), None
    )
    if moved is not None:
        hint = _nodes_command(moved, inventory)
        return UsageError(f"{message}. {moved} has the same name: if it is that one, tell this computer", hint=hint)
    ways = "put it back; or say where it is, by clusterctl nodes --stack; or, if it is lost, end the cluster by its id"
    forget = f"clusterctl forget {inventory.cluster} removes what this computer knows of it, once nothing of it bills"
    return UsageError(f"{message}; {ways} ({forget})", hint=reap_cluster(inventory))


def _nodes_command(folder: Path | str, inventory: Inventory) -> str:
    """`clusterctl nodes --stack stacks/train --rehearse`: without these flags it would be another stack."""
    return (
        f"clusterctl nodes --stack {stack_words(folder, stack_name=inventory.stack_name, rehearse=inventory.rehearsal)}"
    )


def cluster_name_in(file: Path) -> object:
    """The value of `name:` in a cluster.yaml, valid or not; None if the file cannot be read."""
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return None
    return data.get("name") if isinstance(data, dict) else None
