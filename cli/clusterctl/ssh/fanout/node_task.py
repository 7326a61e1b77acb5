"""One node's part of a fan-out: reaches the node, runs the command, hands the result over."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, field

from clusterctl_infra.outputs import InventoryNode

from clusterctl.ssh.failures import NodeFailure, Phase
from clusterctl.ssh.fanout.command_run import CommandRun, ExitCode, Outlet, window_bytes
from clusterctl.ssh.fanout.event_loop import Stopped, Task, Waiting
from clusterctl.ssh.fanout.libssh2 import STDERR
from clusterctl.ssh.fanout.link import Link
from clusterctl.ssh.fanout.link_pool import LinkKey, link_key
from clusterctl.ssh.fanout.outbox import Chunk
from clusterctl.ssh.fanout.reaching import another_link, reach
from clusterctl.ssh.fanout.shared_command import SharedCommand
from clusterctl.ssh.results import NodeResult
from clusterctl.ssh.target import target_of

WARM_ANSWER_S = 3.0
"""A kept connection that does not take a command in this time is given up for a new one."""


@dataclass
class _NodeOutlet:
    """The output of one node: kept here up to a bound, or passed on."""

    shared: SharedCommand
    slot: int
    kept: tuple[bytearray, bytearray] = field(default_factory=lambda: (bytearray(), bytearray()))
    is_truncated: bool = False
    is_running: bool = False
    """Whether the command has been started."""

    def has_room(self) -> bool:
        return self.shared.captures_bytes is not None or self.shared.outbox.has_room()

    def put(self, stream: int, chunk: bytes) -> None:
        if self.shared.captures_bytes is None:
            self.shared.outbox.put(Chunk(slot=self.slot, is_stderr=stream == STDERR, data=chunk))
            return
        kept = self.kept[stream == STDERR]
        room = self.shared.captures_bytes - len(kept)
        self.is_truncated = self.is_truncated or len(chunk) > room
        kept += chunk[:room]


def node_task(shared: SharedCommand, node: InventoryNode) -> Task:
    """The steps until the node's result is in the outbox; an error that nobody expected is put there as it is."""
    began_at = time.monotonic()
    outlet = _NodeOutlet(shared, node.slot)
    ended: ExitCode | None = None
    failure: NodeFailure | None = None
    try:
        try:
            ended = yield from _run(shared, node, outlet)
        except NodeFailure as e:
            failure = e
        except Stopped:
            phase: Phase = "command" if outlet.is_running else "connect"
            failure = NodeFailure("stopped", f"{node.name}: stopped before its end", phase=phase)
    except BaseException as e:  # noqa: BLE001 handed to the caller's thread, which raises it
        shared.outbox.put(e)
        return
    shared.outbox.put(
        NodeResult(
            slot=node.slot,
            name=node.name,
            exit_code=None if ended is None else ended[0],
            signal=None if ended is None else ended[1],
            failure=failure,
            stdout=bytes(outlet.kept[0]),
            stderr=bytes(outlet.kept[1]),
            duration_s=time.monotonic() - began_at,
            is_truncated=outlet.is_truncated,
        )
    )


def _run(shared: SharedCommand, node: InventoryNode, outlet: _NodeOutlet) -> Generator[Waiting, bool, ExitCode]:
    inventory, pool, deadlines = shared.remote.inventory, shared.links.pool, shared.remote.deadlines
    target = target_of(inventory, node)
    key = link_key(inventory, node, target)
    link: Link | None = None
    run: CommandRun | None = None
    try:
        link, run = yield from _started_warm(shared, key, outlet)
        if link is None or run is None:
            link = yield from reach(target, shared.remote.keys, deadlines, shared.links.dialled)
            run = _command_run(shared, link, outlet)
            yield from run.start(time.monotonic() + deadlines.session_s)
        outlet.is_running = True
        ended = yield from run.to_its_end()
        if pool is not None and (yield from run.give_up_channel()):
            pool.put(key, link)
            link = None
        return ended
    finally:
        if run is not None:
            run.let_go()
        if link is not None:
            link.close()


def _started_warm(
    shared: SharedCommand, key: LinkKey, outlet: _NodeOutlet
) -> Generator[Waiting, bool, tuple[Link | None, CommandRun | None]]:
    """Starts the command on a kept connection; gives (None, None) without one, or if it turns out to be dead."""
    link = None if shared.links.pool is None else shared.links.pool.take(key)
    if link is None:
        return None, None
    link.watch()
    run = _command_run(shared, link, outlet)
    now, session_s = time.monotonic(), shared.remote.deadlines.session_s
    is_asked = False
    try:
        yield from run.open(now + min(WARM_ANSWER_S, session_s))
        is_asked = True
        yield from run.ask(now + session_s, taken_by=now + WARM_ANSWER_S)
    except NodeFailure as e:
        may_have_started = e.phase == "command" or (is_asked and e.kind == "lost" and link.is_taken())
        yield Waiting(until=0.0)  # the loop forgets the descriptor before its number comes again
        link.close()
        if may_have_started:  # it may have started, and would start a second time on another connection
            raise NodeFailure(e.kind, e.message, phase="command") from e
        return None, None
    except BaseException:
        link.close()
        raise
    return link, run


def _command_run(shared: SharedCommand, link: Link, outlet: Outlet) -> CommandRun:
    remote = shared.remote
    return CommandRun(
        link,
        remote.command,
        outlet,
        shared.stdin,
        text=shared.text,
        another=lambda ends_at: another_link(link.target, remote.keys, remote.deadlines, ends_at),
        silence_s=remote.deadlines.silence_s,
        window=window_bytes(len(remote.nodes)),
    )
