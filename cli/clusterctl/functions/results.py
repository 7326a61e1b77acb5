"""The return values of a function's ranks: fetched from the nodes, within a limit, and unpickled.

Unpickling runs code that the pickle chooses, so whoever can write as the login user on a node of the task can run code
on this computer. A value is unpickled only if the program asks for it, and after its Python version was compared.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from typing import Any  # values of a person's functions

from clusterctl_infra.errors import ClusterctlError, RemoteError, UsageError
from clusterctl_infra.outputs import InventoryNode

from clusterctl.jobs.node_answers import JobNodes
from clusterctl.on_node.function import call
from clusterctl.ssh.command import Command
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.fanout.sinks import NodeSinks

WORK = "/var/lib/clusterctl/jobs/{job}/work/{file}"
MOST_WORDS_BYTES = 1024 * 1024
MOST_BYTES = call.MOST_RESULT_BYTES + MOST_WORDS_BYTES
FETCH_S = 600.0


def fetched(
    nodes: JobNodes, members: Sequence[InventoryNode], spec: Mapping[str, Any], *, local_rank: int
) -> dict[int, bytes]:
    """Slot → the file with the result of the rank `local_rank` there; empty if there is none.

    Raises ClusterctlError if a node does not give it.
    """
    found = {node.slot: bytearray() for node in members}

    def take(node: InventoryNode, chunk: bytes) -> None:
        found[node.slot] += chunk[: max(0, MOST_BYTES + 1 - len(found[node.slot]))]

    path = WORK.format(job=spec["job"], file=call.result_name(int(spec["attempt"]), local_rank))
    line = f"[ ! -e {path} ] || exec head -c {MOST_BYTES + 1} {path}"
    results = run_on_nodes(
        nodes.inventory,
        members,
        Command(line=line, timeout_s=FETCH_S),
        keys=nodes.keys,
        deadlines=nodes.deadlines,
        pool=nodes.pool,
        sinks=NodeSinks(stdout=take, stderr=lambda node, chunk: None),
    )
    for node in members:
        result = results[node.slot]
        if not result.is_ok:
            why = f"exit {result.exit_code}" if result.failure is None else result.failure.message_under(node.name)
            message = f"{spec['job']}: Node {node.slot} ({node.name}) did not give its result: {why}"
            raise ClusterctlError(message, hint="clusterctl status")
    return {slot: bytes(content) for slot, content in found.items()}


def value_of(content: bytes, where: str) -> Any:
    """The value that the function returned on a rank. `content`: the rank's file; `where` names the rank in messages.

    Raises ClusterctlError if there is none, or it cannot be read here.
    """
    words, body = words_of(content, where)
    if words.get("kind") == call.NOT_KEPT:
        raise ClusterctlError(f"{where}: {words.get('text')}")
    if words.get("kind") != call.VALUE:
        raise ClusterctlError(f"{where} gave no result: it raised {words.get('type')}")
    if words.get("python") != call.python_version():
        message = f"{where}: the result is of Python {words.get('python')}, and this is {call.python_version()}"
        raise UsageError(message, hint="python3 --version")
    if words.get("bytes") != len(body):
        raise ClusterctlError(f"{where}: the result has {len(body)} bytes instead of {words.get('bytes')}")
    try:
        return pickle.loads(body)
    except Exception as e:
        raise ClusterctlError(f"{where}: the result cannot be unpickled here: {type(e).__name__}: {e}") from e


def remote_error(content: bytes, where: str, *, node: str, rank: int) -> RemoteError | None:
    """The exception that the function raised on a rank; None if the rank's file does not have one."""
    try:
        words, _ = words_of(content, where)
    except ClusterctlError:
        return None
    if words.get("kind") != call.RAISED:
        return None
    kind, message, text = (str(words.get(name, "")) for name in ("type", "message", "text"))
    return RemoteError(f"{where}: {kind}: {message}", node=node, rank=rank, type_name=kind, traceback=text)


def words_of(content: bytes, where: str) -> tuple[Mapping[str, Any], bytes]:
    """(the JSON of the first line, the pickle after it) of a rank's file. Raises ClusterctlError."""
    if not content:
        raise ClusterctlError(f"{where} left no result: its process ended before the function did")
    line, _, body = content.partition(b"\n")
    try:
        words = json.loads(line) if len(line) <= MOST_WORDS_BYTES else None
    except (ValueError, RecursionError):
        words = None
    if not isinstance(words, dict):
        raise ClusterctlError(f"{where}: its result is damaged")
    return words, body
