"""A cluster's inventory from its stack's outputs: for a computer on which the stack was never run."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from clusterctl_infra.errors import EngineError, NothingMatched
from clusterctl_infra.outputs import (
    Inventory,
    InventoryUnreadable,
    inventory_from_json,
    inventory_to_json,
    read_inventory,
)
from clusterctl_infra.private_home import make_private_folder
from clusterctl_infra.provider.inventory_file import rehearsal_proxy_command
from clusterctl_infra.put_in_place import put_in_place

from clusterctl.engine.environment import EngineEnvironment, engine_environment, engine_hint
from clusterctl.engine.stack import Stack, read_stack
from clusterctl.home import Home
from clusterctl.text.next_commands import stack_words

OUTPUT = "inventory"
READ_S = 60.0
_ABSENT = ("no stack named", "does not have output property", "current stack does not have")


def fetch_inventory(
    directory: Path, *, stack_name: str, rehearse: bool, home: Home, environ: Mapping[str, str]
) -> Inventory:
    """The inventory that the stack exports; it is kept on this computer if none is.

    Raises NothingMatched, EngineError.
    """
    stack = read_stack(directory, name=stack_name, verb="nodes --stack", rehearse=rehearse)
    environment = engine_environment(stack, rehearse=rehearse, home=home, environ=environ)
    words = stack_words(directory, stack_name=stack_name, rehearse=rehearse)
    text = _stack_output(stack, environment, words)
    try:
        inventory = inventory_from_json(json.loads(text), source=f"{directory}: stack output {OUTPUT}")
    except (ValueError, AttributeError, RecursionError) as e:
        message = f"{directory}: the stack output {OUTPUT} is no inventory: {text.strip()[:100]}"
        raise EngineError(message, hint=f"clusterctl up {words}") from e
    inventory = dataclasses.replace(inventory, stack_dir=str(stack.directory), stack_name=stack.name)
    _keep(with_way_in(inventory, home), home)
    return inventory


def with_way_in(inventory: Inventory, home: Home) -> Inventory:
    """The inventory with the way to rehearsed nodes: a network of this computer, which no stack exports.

    Other inventories stay as they are.
    """
    if not inventory.rehearsal:
        return inventory
    command = rehearsal_proxy_command(inventory.name, home=home.path)
    return dataclasses.replace(inventory, ssh=dataclasses.replace(inventory.ssh, proxy_command=command))


def _stack_output(stack: Stack, environment: EngineEnvironment, words: str) -> str:
    argv = [environment.executable, "stack", "output", OUTPUT, "--json", "--stack", stack.name, "--non-interactive"]
    try:
        done = subprocess.run(
            argv,
            cwd=environment.config_file.parent,
            env=dict(environment.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=READ_S,
        )
    except subprocess.TimeoutExpired as e:
        message = f"pulumi stack output did not end in {READ_S:.0f} s: does the backend answer?"
        raise EngineError(message, hint="pulumi whoami --verbose") from e
    except OSError as e:
        raise EngineError(f"pulumi does not start: {e}", hint=engine_hint()) from e
    if done.returncode == 0:
        return done.stdout
    reported = (done.stderr.strip() or done.stdout.strip()).removeprefix("error: ")
    if any(absent in reported for absent in _ABSENT):
        backend = environment.env.get("PULUMI_BACKEND_URL", "that pulumi is logged in to")
        raise NothingMatched(
            f"the stack {stack.name} of {stack.directory} has no cluster in the Pulumi backend {backend}: "
            f"`clusterctl up {words}` makes one, unless it is in another backend",
            hint="pulumi whoami --verbose",
        )
    folder = shlex.quote(str(environment.config_file.parent))
    hint = f"cd {folder} && pulumi stack output --stack {stack.name}"
    raise EngineError(f"pulumi stack output failed: {reported}", hint=hint)


def _keep(inventory: Inventory, home: Home) -> None:
    """Writes the inventory's file, if there is none.

    A file that a run on this computer wrote knows more: only the place of the stack is changed in it. The file of
    another cluster of this name stays as it is.
    """
    path = home.inventory_file(inventory.cluster)
    with contextlib.suppress(FileNotFoundError, InventoryUnreadable):
        known = read_inventory(path)
        if known.cluster_id != inventory.cluster_id or known.stack_dir == inventory.stack_dir:
            return
        inventory = dataclasses.replace(known, stack_dir=inventory.stack_dir, stack_name=inventory.stack_name)
    make_private_folder(path.parent)
    put_in_place(path, json.dumps(inventory_to_json(inventory), indent=1), keeps_owner=True)
