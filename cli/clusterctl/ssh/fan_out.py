"""One command on many nodes at once; every node gets its own result, whatever the others do."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import IO

from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.ending import MOST_S
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.login_keys import LoginKeys
from clusterctl.ssh.results import NodeResult
from clusterctl.ssh.transport import NodeConnection

FAN_OUT = 64
"""Connections at a time: enough to hide a 50 ms round trip, few enough for one process's CPU."""

NodeSink = Callable[[InventoryNode, bytes], None]
"""Called from a thread of that node's own; whatever it raises ends the whole run."""


@dataclass(frozen=True, kw_only=True)
class NodeSinks:
    """Where output goes as it comes."""

    stdout: NodeSink
    stderr: NodeSink


@dataclass
class _Run:
    """What the threads of one fan-out share."""

    waiting: queue.SimpleQueue[InventoryNode] = field(default_factory=queue.SimpleQueue)
    done: queue.SimpleQueue[NodeResult | BaseException] = field(default_factory=queue.SimpleQueue)
    open: set[NodeConnection] = field(default_factory=set)
    is_stopped: threading.Event = field(default_factory=threading.Event)


def run_on_nodes(
    inventory: Inventory,
    nodes: Sequence[InventoryNode],
    command: str,
    *,
    keys: LoginKeys,
    deadlines: Deadlines | None = None,
    timeout_s: float | None = None,
    stdin: bytes | IO[bytes] | None = None,
    sinks: NodeSinks | None = None,
    on_result: Callable[[NodeResult], None] | None = None,
    fan_out: int = FAN_OUT,
) -> dict[int, NodeResult]:
    """The result of every node by its slot; `on_result` hears each one, on this thread, as soon as it is there.

    `timeout_s` bounds the command on each node; without it a command may run for ever, its connection may not.
    KeyboardInterrupt ends the commands on the nodes before it is passed on.
    """
    run = _Run()
    for node in nodes:
        run.waiting.put(node)

    def work() -> None:
        for node in _taken(run):
            run.done.put(_one(run, inventory, node, command, keys, deadlines, timeout_s, stdin, sinks))

    for number in range(min(fan_out, len(nodes))):
        threading.Thread(target=work, daemon=True, name=f"fan-out {number}").start()
    results: dict[int, NodeResult] = {}
    try:
        while len(results) < len(nodes):
            result = run.done.get()
            if isinstance(result, BaseException):
                raise result
            results[result.slot] = result
            if on_result is not None:
                on_result(result)
    except BaseException:
        _stop(run)
        raise
    return {node.slot: results[node.slot] for node in nodes}


def _taken(run: _Run) -> Iterable[InventoryNode]:
    while not run.is_stopped.is_set():
        try:
            yield run.waiting.get_nowait()
        except queue.Empty:
            return


def _one(
    run: _Run,
    inventory: Inventory,
    node: InventoryNode,
    command: str,
    keys: LoginKeys,
    deadlines: Deadlines | None,
    timeout_s: float | None,
    stdin: bytes | IO[bytes] | None,
    sinks: NodeSinks | None,
) -> NodeResult | BaseException:
    began_at = time.monotonic()
    stdout: list[bytes] = []
    stderr: list[bytes] = []
    code, signal, failure = None, None, None
    try:
        with NodeConnection.open(inventory, node, deadlines, keys=keys) as connection:
            run.open.add(connection)
            try:
                code, signal = connection.stream(
                    command,
                    stdin=stdin,
                    on_stdout=stdout.append if sinks is None else lambda chunk: sinks.stdout(node, chunk),
                    on_stderr=stderr.append if sinks is None else lambda chunk: sinks.stderr(node, chunk),
                    timeout_s=timeout_s,
                )
            finally:
                run.open.discard(connection)
    except NodeFailure as e:
        failure = e
    except BaseException as e:  # noqa: BLE001 handed to the caller's thread, which raises it
        return e
    return NodeResult(
        slot=node.slot,
        name=node.name,
        exit_code=code,
        signal=signal,
        failure=failure,
        stdout=b"".join(stdout),
        stderr=b"".join(stderr),
        duration_s=time.monotonic() - began_at,
    )


def _stop(run: _Run) -> None:
    """Ends what runs on the nodes, all at once; waits no longer than one of them takes."""
    run.is_stopped.set()
    enders = [threading.Thread(target=connection.interrupt, daemon=True) for connection in list(run.open)]
    for ender in enders:
        ender.start()
    ends_at = time.monotonic() + MOST_S
    for ender in enders:
        ender.join(max(0.0, ends_at - time.monotonic()))
