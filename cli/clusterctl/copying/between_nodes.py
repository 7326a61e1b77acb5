"""Copies a file from one node to another over the nodes' own keys: its bytes do not pass through this computer.

A *holder* is a node that has the file, and may send it to another node.
"""

from __future__ import annotations

import queue
import shlex
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.copying.place import NodeFile
from clusterctl.copying.remote_files import SILENT_S, RemoteFiles
from clusterctl.ssh.command import Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.fanout.canceller import Canceller
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.results import NodeResult, outcome

LOOK_S = 0.25
CONNECT_S = 10
BLOCK = "1M"

Ended = queue.SimpleQueue[NodeResult | BaseException]


class NotGiven(Exception):
    """A holder failed to send the file to another node; `is_lost`: this computer does not reach the holder either."""

    def __init__(self, message: str, *, is_lost: bool = False) -> None:
        super().__init__(message)
        self.is_lost = is_lost


@dataclass(frozen=True, kw_only=True)
class Givers:
    """What is needed to reach holders and have them send a file."""

    inventory: Inventory
    keys: LoginKeys
    deadlines: Deadlines

    def give(
        self,
        partial: str,
        offset: int,
        moved: Callable[[int], None],
        *,
        source: NodeFile,
        size_bytes: int,
        node: InventoryNode,
        files: RemoteFiles,
    ) -> None:
        """Has the holder write `source`, from `offset` to `size_bytes`, into the file `partial` on `node`.

        Meanwhile `moved` gets the number of bytes that have newly arrived in `files`, which are those of `node`.
        Raises NotGiven, and whatever `files` raises if `node` itself is lost.
        """
        # If `node` is the holder itself, it copies the file on its own disk, without a login.
        login = None if node.slot == source.node.slot else f"{self.inventory.ssh.user}@{node.name}"
        command = Command(line=giving_line(source.path, login, partial, offset, size_bytes))
        canceller = Canceller()
        ended = self._started(source.node, command, canceller)
        try:
            result = _awaited(ended, source, files, partial, offset, moved)
        except BaseException:
            canceller.cancel()
            raise
        _check(result, source)

    def _started(self, node: InventoryNode, command: Command, canceller: Canceller) -> Ended:
        """Runs the command in a thread, and returns the queue that gets its result or its exception."""
        ended: Ended = queue.SimpleQueue()

        def run() -> None:
            try:
                results = run_on_nodes(
                    self.inventory, [node], command, keys=self.keys, deadlines=self.deadlines, canceller=canceller
                )
                ended.put(results[node.slot])
            except BaseException as e:  # noqa: BLE001 handed to the thread that waits, which raises it
                ended.put(e)

        threading.Thread(target=run, daemon=True, name=f"{node.name} gives").start()
        return ended


def giving_line(path: str, login: str | None, partial: str, offset: int, size_bytes: int) -> str:
    """The line for the holder's shell: it copies `path` from `offset` to `size_bytes` to the same place in `partial`.

    `login`: where `partial` is; None: on the holder itself. The partial file is written by position and never
    truncated, so it does no harm if an earlier try or another command still writes the same bytes to the same place.
    Only its owner may read it; it gets the permissions of its source when it is complete.
    """
    # The count is needed because the file may have grown since its size was taken, as a log does.
    part = f"skip={offset} count={size_bytes - offset} iflag=skip_bytes,count_bytes"
    read = f"dd if={shlex.quote(path)} bs={BLOCK} {part} status=none"
    place = f"seek={offset} oflag=seek_bytes conv=notrunc"
    write = f"umask 077; dd of={shlex.quote(partial)} bs={BLOCK} {place} status=none"
    if login is None:
        return f"{read} | ({write})"
    options = f"-o BatchMode=yes -o ConnectTimeout={CONNECT_S} -o ServerAliveInterval=15 -o ServerAliveCountMax=3"
    return f"{read} | ssh -x {options} {shlex.quote(login)} {shlex.quote(write)}"


def _awaited(
    ended: Ended,
    source: NodeFile,
    files: RemoteFiles,
    partial: str,
    offset: int,
    moved: Callable[[int], None],
) -> NodeResult:
    """Waits for the command's result, and meanwhile reports how much of the file is on the target's disk.

    Raises NotGiven if nothing arrives for `SILENT_S`.
    """
    arrived, grew_at = offset, time.monotonic()
    while True:
        try:
            result = ended.get(timeout=LOOK_S)
        except queue.Empty:
            result = None
        now_there = files.size_bytes(partial) or 0
        if now_there > arrived:
            moved(now_there - arrived)
            arrived, grew_at = now_there, time.monotonic()
        if isinstance(result, BaseException):
            raise result
        if result is not None:
            return result
        if time.monotonic() - grew_at > SILENT_S:
            raise NotGiven(f"{source.node.name}: nothing came for {SILENT_S:g} s")


def _check(result: NodeResult, source: NodeFile) -> None:
    if result.failure is not None:
        raise NotGiven(f"{source.node.name}: {result.failure.message_under(source.node.name)}", is_lost=True)
    if not result.is_ok:
        lines = result.stderr.decode(errors="replace").strip().splitlines()
        raise NotGiven(f"{source.node.name}: {lines[-1] if lines else outcome(result)}")
