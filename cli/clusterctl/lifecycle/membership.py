"""cluster.json, the file with the membership, and how a node gets it: by `clusterctl-node apply` over SSH."""

from __future__ import annotations

import base64
import functools
import json
import shlex
import zlib
from collections.abc import Generator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from clusterctl_bootstrap.agent_source import later_sources
from clusterctl_bootstrap.cloud_config import AGENT_FOLDER
from clusterctl_infra.config.hooks import ScriptConfig
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.outputs import Inventory, InventoryNode
from clusterctl_infra.strict_json import NotAsExpected, parsed_object

from clusterctl.home import Home
from clusterctl.lifecycle.script_delivery import script_texts, take_line
from clusterctl.ssh.command import Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.conversation import Conversation
from clusterctl.ssh.fanout.event_loop import Waiting
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.keys.login_keys import load_login_keys
from clusterctl.ssh.results import NodeResult
from clusterctl.ssh.way_in import uses_session_manager

VERSION = 1
APPLY_S = 20.0
APPLY = ("clusterctl-node", "apply")
INSTALLER = f"""\
import base64, fcntl, json, os, sys, zlib
os.chdir("{AGENT_FOLDER}")
size, then = int(sys.argv[1]), sys.argv[2:]
text = b""
while len(text) < size:
    text += os.read(0, size - len(text)) or sys.exit("the modules of the agent did not come")
fcntl.flock(os.open(".", os.O_RDONLY), fcntl.LOCK_EX)
for name, text in json.loads(zlib.decompress(base64.b64decode(text))).items():
    if os.path.exists(name) and open(name, "rb").read() == text.encode():
        continue
    with open(name + ".new", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(name + ".new", name)
if then:
    os.execvp(then[0], then)
"""
"""Reads as many bytes of `later_modules` as its first argument says, and puts each module in place: whole and on disk,
or not at all, also if two installers run at once. A module that is there already is not written again: on a busy disk
each sync takes a while.
Then it becomes the program that is named, which reads the rest of the input."""


def membership_of(inventory: Inventory, config: ClusterConfig, *, slot_cidr: str) -> bytes:
    """The membership, with everything that the configuration sets for running nodes: each delivery carries it all."""
    return membership_file(
        inventory,
        slot_cidr=slot_cidr,
        env=config.env,
        authorized_keys=config.access.authorized_keys or None,
        dead_man=config.caps.dead_man,
        idle=config.caps.idle,
    )


def membership_file(
    inventory: Inventory,
    *,
    slot_cidr: str,
    env: Mapping[str, str],
    authorized_keys: Sequence[str] | None,
    dead_man: timedelta | None = None,
    idle: timedelta | None = None,
) -> bytes:
    """The membership as JSON, the same for every node; a node goes by the highest generation that it has seen.

    `dead_man`: how long a node may be without the others; `idle`: how long the cluster may be without use.
    """
    content = {
        "version": VERSION,
        "cluster_id": inventory.cluster_id,
        "run": inventory.run,
        "generation": inventory.generation,
        "nodes": len(inventory.nodes),
        "slot_cidr": slot_cidr,
        "deadline": deadline_text(inventory.deadline),
        "env": dict(env),
        "gpus_per_node": inventory.gpus_per_node,
        **_ranks(inventory),
        **({} if dead_man is None else {"dead_man_s": dead_man.total_seconds()}),
        "authorized_keys": None if authorized_keys is None else list(authorized_keys),
        **({} if idle is None else {"idle_s": int(idle.total_seconds())}),
    }
    return json.dumps(content).encode()


def _ranks(inventory: Inventory) -> dict[str, list[int]]:
    """The rank of each slot; left out if each is its slot, so that a membership without an order stays as it was."""
    ranks = [node.rank for node in sorted(inventory.nodes, key=lambda node: node.slot)]
    return {} if ranks == sorted(ranks) else {"ranks": ranks}


def deadline_text(iso: str) -> str:
    """`2026-11-21T13:18:26Z`: the only format in which a node reads a time."""
    return datetime.fromisoformat(iso).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def apply_membership(node: Conversation, content: bytes) -> Generator[Waiting, bool, str | None]:
    """Gives the membership to a node. Returns None when the node has it, else why not.

    With it go the agent's modules that user-data has no room for and a node does not need before it is ready. Raises
    NodeFailure when the node was lost.
    """
    modules = later_modules()
    command = Command(line=install_line(len(modules), *APPLY), timeout_s=APPLY_S)
    answer = yield from node.run(command, modules + content)
    return None if answer.exit_code == 0 else refusal_in(answer.stdout, answer.stderr, answer.exit_code)


def install_line(size: int, *then: str) -> str:
    """The line that takes `size` bytes of modules, and hands the rest of its input to the program `then`."""
    return shlex.join(["sudo", "-n", *install_argv(size, *then)])


def install_argv(size: int, *then: str) -> tuple[str, ...]:
    """The argv that the line runs as root."""
    return ("python3", "-ISc", INSTALLER, str(size), *then)


@functools.cache
def later_modules() -> bytes:
    """The input of INSTALLER, the same for all nodes: the modules as JSON, name → text, compressed, in base64 (ASCII).

    Compressed, it has a third of its size: with `extend` all nodes take it at once, perhaps through one bastion.
    """
    return base64.b64encode(zlib.compress(json.dumps(dict(later_sources())).encode(), zlib.Z_BEST_COMPRESSION))


def refusal_in(stdout: bytes, stderr: bytes, exit_code: int) -> str:
    """The node's own reason, from its JSON line or else the last line that it printed."""
    try:
        return parsed_object(stdout).text("error")
    except NotAsExpected:
        lines = (stderr or stdout).decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"clusterctl-node apply ended with {exit_code}"


CONNECT_S, BY_SESSION_MANAGER_S = 10.0, 20.0
"""How long `deliver` waits for a connection to a node, which has been ready before and so should answer at once."""


class Delivery(Protocol):
    """Takes a membership to nodes; `deliver` does it by SSH."""

    def __call__(
        self,
        inventory: Inventory,
        nodes: Sequence[InventoryNode],
        content: bytes,
        scripts: Sequence[ScriptConfig],
        *,
        home: Home,
    ) -> Mapping[int, str]:
        """Gives the nodes the membership. Returns slot → why the node did not take it."""


def deliver(
    inventory: Inventory,
    nodes: Sequence[InventoryNode],
    content: bytes,
    scripts: Sequence[ScriptConfig],
    *,
    home: Home,
) -> Mapping[int, str]:
    """Gives the nodes the membership. Returns slot → why a node did not take it; empty when all took it.

    The modules that come with a membership are sent along, as a node may have had none yet, and scripts for nodes that
    wait for them; one that waits for other scripts takes the membership and goes on waiting.
    """
    wait_s = BY_SESSION_MANAGER_S if uses_session_manager(inventory.ssh.proxy_command) else CONNECT_S
    try:
        keys = load_login_keys(inventory, home, ssh_dir=Path.home() / ".ssh")
    except NodeFailure as failure:
        return {node.slot: failure.message for node in nodes}
    texts, modules = script_texts(scripts) if scripts else b"", later_modules()
    installing = install_argv(len(modules), *APPLY)
    line = take_line(len(texts), *installing) if scripts else shlex.join(["sudo", "-n", *installing])
    results = run_on_nodes(
        inventory,
        nodes,
        Command(line=line, timeout_s=APPLY_S),
        keys=keys,
        deadlines=Deadlines.within(wait_s),
        stdin=texts + modules + content,
        fan_out=max(1, len(nodes)),
    )
    return {slot: _why(result) for slot, result in sorted(results.items()) if not result.is_ok}


def _why(result: NodeResult) -> str:
    if result.failure is not None:
        return result.failure.message_under(result.name)
    return refusal_in(result.stdout, result.stderr, result.exit_code or 0)
