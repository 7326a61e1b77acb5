"""One command on many nodes at once; every node gets its own result, whatever the others do."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO

from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.ssh.command import FAN_OUT, Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.canceller import Canceller
from clusterctl.ssh.fanout.command_input import BytesInput, CommandInput
from clusterctl.ssh.fanout.event_loop import EventLoop, Task
from clusterctl.ssh.fanout.libssh2 import load
from clusterctl.ssh.fanout.link_pool import LinkPool
from clusterctl.ssh.fanout.node_task import node_task
from clusterctl.ssh.fanout.outbox import Chunk, Event, Outbox
from clusterctl.ssh.fanout.shared_command import OpenLinks, SharedCommand
from clusterctl.ssh.fanout.sinks import NodeSinks
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.remote_command import RemoteCommand
from clusterctl.ssh.results import NodeResult
from clusterctl.ssh.target import PersonsNode
from clusterctl.ssh.watchdog import MOST_S

FAN_OUT_BY_PROXY = 64
"""Each proxy command is a process here, and a login on a bastion."""
CAPTURED_BYTES = 4 * 1024 * 1024
"""How much is kept of each node's stdout and stderr, when nobody takes them as they come."""
MOST_LOOPS = 2
"""The most threads with a loop: the handshakes' arithmetic is done outside the interpreter's lock, all else inside."""
NODES_A_LOOP = 16
"""Nodes to be connected for each loop: where connections exist, a second loop would only wait for that lock."""


def run_on_nodes(
    inventory: Inventory,
    nodes: Sequence[InventoryNode],
    command: str | Command,
    *,
    keys: LoginKeys,
    deadlines: Deadlines | None = None,
    timeout_s: float | None = None,
    stdin: IO[bytes] | bytes | None = None,
    sinks: NodeSinks | None = None,
    on_result: Callable[[NodeResult], None] | None = None,
    fan_out: int | None = None,
    pool: LinkPool | None = None,
    canceller: Canceller | None = None,
) -> dict[int, NodeResult]:
    """The result of every node by its slot; see `run_remote`.

    `timeout_s` counts only if `command` is a text. `pool` has connections that are open already, and gets them back.
    """
    remote = RemoteCommand(
        inventory=inventory,
        nodes=tuple(nodes),
        command=Command(line=command, timeout_s=timeout_s) if isinstance(command, str) else command,
        keys=keys,
        deadlines=deadlines or Deadlines(),
        stdin=stdin,
        fan_out=fan_out,
    )
    return run_remote(remote, sinks=sinks, on_result=on_result, links=OpenLinks(pool=pool), canceller=canceller)


def run_remote(
    remote: RemoteCommand,
    *,
    sinks: NodeSinks | None = None,
    on_result: Callable[[NodeResult], None] | None = None,
    links: OpenLinks | None = None,
    canceller: Canceller | None = None,
    on_quiet: Callable[[], None] | None = None,
) -> dict[int, NodeResult]:
    """The result of every node by its slot; `on_result` hears each one, on this thread, as soon as it is there.

    Without a timeout a command may run for ever; connecting always has an end.
    KeyboardInterrupt ends the commands on the nodes before it is passed on; what they still say, and how each ended, is
    passed on too.
    `links` has connections that exist already; those that are dialled and not taken are closed at the end. `canceller`
    ends the run from another thread. `on_quiet` is called, on this thread, when all that has come was passed on.
    """
    load()  # before there are threads
    links = links or OpenLinks()
    run = _Run(remote, links, sinks, on_quiet)
    if canceller is not None:
        canceller.on_cancel(run.stop)
    run.start()
    try:
        results = _heard(run, len(remote.nodes), on_result, is_failing_fast=remote.is_failing_fast)
    finally:
        run.close()
        links.dialled.close()
    return {node.slot: results[node.slot] for node in remote.nodes}


def _heard(
    run: _Run, count: int, on_result: Callable[[NodeResult], None] | None, *, is_failing_fast: bool
) -> dict[int, NodeResult]:
    """Collects every node's result as it comes; whatever interrupts this ends the run first."""
    results: dict[int, NodeResult] = {}
    try:
        while len(results) < count:
            result = run.next_result()
            results[result.slot] = result
            if on_result is not None:
                on_result(result)
            if is_failing_fast and not result.is_ok:
                run.stop()
    except BaseException:
        run.stop()
        run.hear_last_words(on_result)
        raise
    return results


def _is_by_proxy(remote: RemoteCommand) -> bool:
    own = any(isinstance(node, PersonsNode) and node.proxy_argv is not None for node in remote.nodes)
    return own or remote.inventory.ssh.proxy_command is not None


def _widths(fan_out: int, *, to_connect: int) -> list[int]:
    """How many nodes each event loop has at a time: one loop, or more where many nodes are to be connected."""
    count = max(1, min(MOST_LOOPS, os.cpu_count() or 1, fan_out, to_connect // NODES_A_LOOP))
    return [fan_out // count + (number < fan_out % count) for number in range(count)]


def _pumped(stdin: IO[bytes] | bytes | None, *, readers: int, on_more: Callable[[], None]) -> CommandInput | None:
    """The input that a thread reads for all nodes; None where all of it is there, or there is none."""
    if stdin is None or isinstance(stdin, bytes):
        return None
    return CommandInput(stdin, readers=readers, on_more=on_more)


class _Run:
    """One fan-out under way: its threads, and the queue that takes their news to the caller's thread."""

    def __init__(
        self,
        remote: RemoteCommand,
        links: OpenLinks,
        sinks: NodeSinks | None,
        on_quiet: Callable[[], None] | None,
    ) -> None:
        self._on_quiet = on_quiet
        self._sinks = sinks
        self._by_slot = {node.slot: node for node in remote.nodes}
        self._waiting: queue.SimpleQueue[InventoryNode] = queue.SimpleQueue()
        for node in remote.nodes:
            self._waiting.put(node)
        self._outbox = Outbox(self._wake)
        stdin, count = remote.stdin, len(remote.nodes)
        self._pumped = _pumped(stdin, readers=count, on_more=self._wake)
        self._command = SharedCommand(
            remote=remote,
            links=links,
            stdin=BytesInput(stdin) if isinstance(stdin, bytes) else self._pumped,
            outbox=self._outbox,
            captures_bytes=CAPTURED_BYTES if sinks is None else None,
        )
        width = remote.fan_out or (FAN_OUT_BY_PROXY if _is_by_proxy(remote) else FAN_OUT)
        widths = _widths(width, to_connect=count - (0 if links.pool is None else len(links.pool)))
        self._loops = [EventLoop(self._tasks(), width=width) for width in widths]
        self._threads = [
            threading.Thread(target=self._run_loop, args=(loop,), daemon=True, name=f"fan-out {number}")
            for number, loop in enumerate(self._loops)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()
        if self._pumped is not None:
            self._pumped.start()

    def close(self) -> None:
        """Reads nothing more of what was typed or piped in."""
        if self._pumped is not None:
            self._pumped.stop()

    def next_result(self) -> NodeResult:
        """The next node's result; output before it goes to the sinks. Raises what a loop or a node's task raised."""
        while True:
            event = self._next_event()
            if isinstance(event, NodeResult):
                return event
            self._pass_on(event)

    def _next_event(self) -> Event:
        if self._on_quiet is not None:
            with contextlib.suppress(queue.Empty):
                return self._outbox.get(timeout_s=0)
            self._on_quiet()
        return self._outbox.get()

    def stop(self) -> None:
        """Ends what runs; a node that has not begun gets a result that says so."""
        for loop in self._loops:
            loop.stop()
        with contextlib.suppress(queue.Empty):
            while True:
                node = self._waiting.get_nowait()
                message = f"{node.name}: not run, because the command was stopped"
                self._outbox.put(
                    NodeResult(
                        slot=node.slot,
                        name=node.name,
                        exit_code=None,
                        signal=None,
                        failure=NodeFailure("stopped", message),
                        stdout=b"",
                        stderr=b"",
                        duration_s=0.0,
                    )
                )

    def hear_last_words(self, on_result: Callable[[NodeResult], None] | None) -> None:
        """Passes on what still comes while the commands end; returns when they have, or soon."""
        ends_at = time.monotonic() + MOST_S
        while time.monotonic() < ends_at:
            is_over = not any(thread.is_alive() for thread in self._threads)
            try:
                event = self._outbox.get(timeout_s=0 if is_over else 0.05)
            except queue.Empty:
                if is_over:
                    return
                continue
            with contextlib.suppress(BrokenPipeError):
                if isinstance(event, NodeResult):
                    if on_result is not None:
                        on_result(event)
                elif not isinstance(event, BaseException):
                    self._pass_on(event)

    def _pass_on(self, event: Event) -> None:
        if isinstance(event, BaseException):
            raise event
        if isinstance(event, Chunk) and self._sinks is not None:
            sink = self._sinks.stderr if event.is_stderr else self._sinks.stdout
            sink(self._by_slot[event.slot], event.data)

    def _run_loop(self, loop: EventLoop) -> None:
        try:
            loop.run()
        except BaseException as e:  # noqa: BLE001 handed to the caller's thread, which raises it
            self._outbox.put(e)

    def _tasks(self) -> Iterator[Task]:
        with contextlib.suppress(queue.Empty):
            while True:
                yield node_task(self._command, self._waiting.get_nowait())

    def _wake(self) -> None:
        for loop in self._loops:
            loop.wake()
