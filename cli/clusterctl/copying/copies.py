"""All copies of one command: several nodes at a time, each node's files one after another over one connection."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterctl_infra.errors import ClusterctlError, SomeNodesFailed
from clusterctl_infra.outputs import Inventory

from clusterctl.copying.content import Content, content_of
from clusterctl.copying.one_copy import download, upload
from clusterctl.copying.place import Transfer
from clusterctl.copying.progress import Progress
from clusterctl.copying.remote_files import CopyFailed, RemoteFiles
from clusterctl.output import Output
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.login_keys import LoginKeys
from clusterctl.ssh.reached import not_reached
from clusterctl.ssh.transport import NodeConnection

AT_A_TIME = 8
"""Nodes: encryption for more than that fills the processor, and one line out is shared by all of them."""
SHOW_S = 0.2


@dataclass(frozen=True, kw_only=True)
class Copied:
    """One transfer's end: what was said of it, or why it failed."""

    transfer: Transfer
    told: str | None = None
    failure: NodeFailure | str | None = None


def copy_all(
    todo: Sequence[Transfer], inventory: Inventory, *, keys: LoginKeys, deadlines: Deadlines, output: Output
) -> int:
    """0, or 4 when some of several failed. Raises the failure of a single one; ClusterctlError for a file not here."""
    contents = _contents(todo)
    progress = Progress(len(todo))
    ended: queue.SimpleQueue[Copied | BaseException] = queue.SimpleQueue()
    waiting: queue.SimpleQueue[list[Transfer]] = queue.SimpleQueue()
    by_node: dict[int, list[Transfer]] = {}
    for transfer in todo:
        by_node.setdefault(transfer.node.slot, []).append(transfer)
    for group in by_node.values():
        waiting.put(group)

    def work() -> None:
        try:
            while True:
                group = waiting.get_nowait()
                for copied in _node_copies(group, contents, inventory, keys, deadlines, progress):
                    progress.done()
                    ended.put(copied)
        except queue.Empty:
            return
        except BaseException as e:  # noqa: BLE001 handed to the caller's thread, which raises it
            ended.put(e)

    for number in range(min(AT_A_TIME, len(by_node))):
        threading.Thread(target=work, daemon=True, name=f"copy {number}").start()
    failed = [copied for copied in _awaited(ended, len(todo), progress, output) if copied.failure is not None]
    if failed and len(todo) == 1:
        raise _error(failed[0], inventory)
    return SomeNodesFailed.exit_code if failed else 0


def _contents(todo: Iterable[Transfer]) -> Mapping[Path, Content]:
    """Each local source once."""
    paths = dict.fromkeys(transfer.local for transfer in todo if transfer.direction == "up")
    contents = {}
    for path in paths:
        if path.is_dir():
            raise ClusterctlError(f"{path} is a folder; cp copies files", hint=f"tar -cf {path.name}.tar {path}")
        try:
            contents[path] = content_of(path)
        except OSError as e:
            raise ClusterctlError(f"{path}: {e.strerror}") from e
    return contents


def _node_copies(
    group: Sequence[Transfer],
    contents: Mapping[Path, Content],
    inventory: Inventory,
    keys: LoginKeys,
    deadlines: Deadlines,
    progress: Progress,
) -> Iterable[Copied]:
    left = list(group)
    try:
        with (
            NodeConnection.open(inventory, group[0].node, deadlines, keys=keys) as connection,
            connection.sftp() as sftp,
        ):
            files = RemoteFiles(connection, sftp)
            while left:
                yield _copied(left.pop(0), contents, files, progress)
    except NodeFailure as failure:
        for transfer in left:
            yield Copied(transfer=transfer, failure=failure)


def _copied(transfer: Transfer, contents: Mapping[Path, Content], files: RemoteFiles, progress: Progress) -> Copied:
    try:
        if transfer.direction == "up":
            told = upload(transfer, contents[transfer.local], files, progress)
        else:
            told = download(transfer, files, progress)
        return Copied(transfer=transfer, told=told)
    except NodeFailure as failure:
        return Copied(transfer=transfer, failure=failure)
    except CopyFailed as e:
        return Copied(transfer=transfer, failure=str(e))
    except EOFError:
        return Copied(transfer=transfer, failure="the connection broke; the same command goes on where it was")
    except OSError as e:
        where = transfer.remote if transfer.direction == "down" or e.filename is None else e.filename
        return Copied(transfer=transfer, failure=f"{where}: {e.strerror or e}")


def _awaited(
    ended: queue.SimpleQueue[Copied | BaseException], count: int, progress: Progress, output: Output
) -> list[Copied]:
    """Every transfer's end; the person sees how far they are meanwhile."""
    copies: list[Copied] = []
    while len(copies) < count:
        try:
            item = ended.get(timeout=SHOW_S)
        except queue.Empty:
            output.live(progress.text())
            continue
        if isinstance(item, BaseException):
            raise item
        copies.append(item)
        if item.failure is None:
            output.note(f"[{item.transfer.node.name}] {item.told}")
        elif count > 1:
            output.note(f"[{item.transfer.node.name}] {_words(item.failure)}")
    return copies


def _words(failure: NodeFailure | str) -> str:
    return failure.message if isinstance(failure, NodeFailure) else failure


def _error(copied: Copied, inventory: Inventory) -> ClusterctlError:
    node, failure = copied.transfer.node, copied.failure
    if isinstance(failure, NodeFailure):
        return not_reached(failure, name=node.name, slot=node.slot, cluster=inventory.cluster)
    return ClusterctlError(f"{node.name}: {failure}")
