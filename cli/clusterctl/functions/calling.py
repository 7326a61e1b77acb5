"""How one call of a function becomes a job on a cluster that is up."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any  # values of a person's functions

from clusterctl_infra.catalog.gpus import GpuSpec, fits_gpu
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import ConfigError, NothingMatched, NotReached
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.functions.payload import REQUIREMENTS, module_folder, own_files, pickled_call, staged
from clusterctl.functions.settings import FunctionSettings
from clusterctl.functions.task import CONNECT_S, Task, secure_own_home
from clusterctl.jobs.images import login_in
from clusterctl.jobs.known import job_nodes
from clusterctl.jobs.launcher import Launch
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.spec import AUTO as NPROC_AUTO
from clusterctl.jobs.spec import JobRequest, default_name
from clusterctl.jobs.start import JobStart, started_by
from clusterctl.on_node.function import call
from clusterctl.on_node.job.launchers import PLAIN, TORCHRUN
from clusterctl.options import chosen_cluster
from clusterctl.ssh.command import Command
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.text.visible import visible

__all__ = ["chosen_cluster", "pickled_call", "registry_login", "secure_own_home", "started"]
GRACE_S = 30.0
LOOK_S = 30.0
LOOK = (
    "import importlib.util as u, json, sys;"
    "print(json.dumps({'python': '%d.%d' % sys.version_info[:2], 'has_torch': u.find_spec('torch') is not None}))"
)
JOB_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The PATH of jobs."""


def started(function: Callable[..., Any], settings: FunctionSettings, content: bytes, inventory: Inventory) -> Task:
    """Starts the job that calls the function, and returns its task. `content`: the call, from `pickled_call`.

    Raises NotReached if a node does not answer, ClusterctlError for anything else; then nothing was started.
    """
    login = registry_login(settings)
    members = chosen_members(inventory, settings.num_instances)
    gpus = held_gpus(inventory, settings.gpus)
    nodes = job_nodes(inventory, connect_timeout_s=CONNECT_S)
    launch, nproc = chosen_start(
        {} if settings.container is not None else _interpreters(nodes, members, settings.environment),
        function.__name__,
        settings,
        gpus=inventory.gpus_per_node if gpus is None else gpus,
    )
    request = JobRequest(
        inventory=inventory,
        nodes=members,
        name=settings.name or default_name((function.__name__,), datetime.now(UTC), token_hex(2)),
        launch=launch,
        nproc=nproc,
        gpus=gpus,
        environment=settings.environment,
        image=settings.container,
        requirements=f"{call.FOLDER}/{REQUIREMENTS}" if settings.requirements else None,
        timeout_s=settings.timeout_s,
        grace_s=GRACE_S,
        by=started_by(),
    )
    folder = settings.workdir or module_folder(function)
    own = own_files(content, settings.requirements)
    with staged(folder, own, including=settings.include) as snapshot:
        start = JobStart(
            request=request,
            nodes=nodes,
            snapshot=snapshot,
            secrets={},
            registry_login=login,
            wait_s=0.0,
            tell=_tell,
        )
        return Task(nodes, start.begin())


def registry_login(settings: FunctionSettings) -> str:
    """USER:PASSWORD for the image's registry; empty if none is named. Raises UsageError, which never shows it."""
    if settings.registry_secret is None:
        return ""
    return login_in(settings.registry_secret, os.environ, option="registry_secret=")


def chosen_members(inventory: Inventory, num_instances: int | None) -> tuple[InventoryNode, ...]:
    """The first `num_instances` nodes by slot; None: all of them. Raises NothingMatched if there are fewer."""
    nodes = sorted(inventory.nodes, key=lambda node: node.slot)
    if num_instances is not None and num_instances > len(nodes):
        message = f"num_instances={num_instances}, and {inventory.cluster} has {len(nodes)} nodes"
        raise NothingMatched(message, hint="clusterctl nodes")
    return tuple(nodes[:num_instances])


def held_gpus(inventory: Inventory, wanted: GpuSpec | None) -> int | None:
    """How many GPUs of each node the job takes; None: whole nodes. Raises ConfigError if the nodes lack them."""
    if wanted is None:
        return None
    row = load_catalog().types.get(inventory.instance_type)
    fits = row is None or fits_gpu(row, wanted)
    if not fits or wanted.count > inventory.gpus_per_node:
        has = f"{inventory.gpus_per_node} × {inventory.gpu_name}" if inventory.gpus_per_node else "no GPUs"
        message = f"gpu: {wanted.count} × {wanted.key} were asked for, and a node of {inventory.cluster} has {has}"
        raise ConfigError(message, hint="clusterctl nodes")
    return None if wanted.count == inventory.gpus_per_node else wanted.count


def chosen_start(
    found: Mapping[str, Mapping[str, object]], function: str, settings: FunctionSettings, *, gpus: int
) -> tuple[Launch, str]:
    """How the ranks are started, and how many on each node. `found`: what `_interpreters` found.

    It is empty for containers: there the function's main program compares the versions of Python.
    Raises ConfigError if an interpreter could not read what is sent, or only some of the nodes have torch.
    """
    own = call.python_version()
    problems = [f"{name}: python3 is {row['python']}" for name, row in found.items() if row["python"] != own]
    if problems:
        message = f"{function}() was pickled by Python {own}, and other versions cannot read it; nothing was started"
        raise ConfigError(message, problems=problems, hint=f"python{next(iter(found.values()))['python']} SCRIPT")
    command = (f"{call.FOLDER}/{call.MAIN}", function)
    without = [name for name, row in found.items() if not row["has_torch"]]
    if settings.is_manual:
        return Launch(launcher=PLAIN, command=command), "1"
    if settings.requirements:
        without = list(found)  # the job gets an environment of its own, which has torch only if they name it
    if not without:
        return Launch(launcher=TORCHRUN, command=command), NPROC_AUTO
    if len(without) < len(found):
        message = f"{function}(): only some of the nodes have torch; nothing was started"
        raise ConfigError(message, problems=[f"{name}: no torch" for name in without], hint="clusterctl status")
    # Without torch no launcher is needed: plain gives every rank the same variables.
    return Launch(launcher=PLAIN, command=command), str(max(1, gpus))


def _interpreters(
    nodes: JobNodes, members: Sequence[InventoryNode], environment: Mapping[str, str]
) -> dict[str, Mapping[str, object]]:
    """Node's name → the version of the python3 that a job would find there, and whether it has torch.

    Raises ConfigError if a node's answer cannot be read, NotReached.
    """
    variables = {
        "PATH": JOB_PATH,
        **{name: environment[name] for name in ("PATH", "PYTHONPATH") if name in environment},
    }
    pairs = " ".join(f"{name}='{value}'" for name, value in variables.items() if "'" not in value)
    command = Command(line=f'{pairs} python3 -c "{LOOK}"', timeout_s=LOOK_S)
    results = run_on_nodes(
        nodes.inventory, members, command, keys=nodes.keys, deadlines=nodes.deadlines, pool=nodes.pool
    )
    found: dict[str, Mapping[str, object]] = {}
    for node in members:
        result = results[node.slot]
        if result.failure is not None:
            message = f"Node {node.slot}: {result.failure.message_under(node.name)}; nothing was started"
            raise NotReached(message, hint="clusterctl status")
        try:
            words = json.loads(result.stdout.splitlines()[-1])
            found[node.name] = {"python": str(words["python"]), "has_torch": bool(words["has_torch"])}
        except (ValueError, LookupError, TypeError) as e:
            why = result.stderr.decode(errors="replace").strip()[-300:]
            message = f"Node {node.slot} ({node.name}) does not say which Python it has: {why}; nothing was started"
            raise ConfigError(message, hint="clusterctl status") from e
    return found


def _tell(text: str) -> None:
    sys.stderr.write(visible(f"{text}\n"))
