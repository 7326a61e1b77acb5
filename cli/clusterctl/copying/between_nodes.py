"""A file from one node to another, over the nodes' own trust: its bytes do not pass through this computer."""

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
    """A node that has the file did not bring it to the next; `is_lost`: it does not answer us any more either."""

    def __init__(self, message: str, *, is_lost: bool = False) -> None:
        super().__init__(message)
        self.is_lost = is_lost


@dataclass(frozen=True, kw_only=True)
class Givers:
    """How holders are reached and told what to do."""

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
        """The rest of `source`, to `size_bytes`, is in `partial` of `node`, which `files` looks at meanwhile.

        Raises NotGiven, and what `files` raises when `node` itself is lost.
        """
        # Whether `node` is the source itself: a copy beside it needs no network.
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
        """Runs the command in a thread; its end is put where the caller looks."""
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
    """What the holder's shell runs: the file from `offset` to its size, written there at the same place.

    Written by position, and nothing is cut off: an earlier try that is still on its way, or another command's, writes
    the same bytes to the same place. Nobody else may read it yet: its own permissions come with its name.
    """
    # It may have grown since its size was taken, as a log does.
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
    """The command's result; what has come is read off the target's own disk. Raises NotGiven when nothing comes."""
    came, grew_at = offset, time.monotonic()
    while True:
        try:
            result = ended.get(timeout=LOOK_S)
        except queue.Empty:
            result = None
        now_there = files.size_bytes(partial) or 0
        if now_there > came:
            moved(now_there - came)
            came, grew_at = now_there, time.monotonic()
        if isinstance(result, BaseException):
            raise result
        if result is not None:
            return result
        if time.monotonic() - grew_at > SILENT_S:
            raise NotGiven(f"{source.node.name}: nothing came for {SILENT_S:g} s")


def _check(result: NodeResult, source: NodeFile) -> None:
    if result.failure is not None:
        raise NotGiven(f"{source.node.name}: {result.failure.told_under(source.node.name)}", is_lost=True)
    if not result.is_ok:
        said = result.stderr.decode(errors="replace").strip().splitlines()
        raise NotGiven(f"{source.node.name}: {said[-1] if said else outcome(result)}")
