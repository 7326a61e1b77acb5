"""Carries out all copies of a command: several nodes at a time, each node's files one by one over one connection."""

from __future__ import annotations

import queue
import shlex
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from clusterctl_infra.errors import ClusterctlError, SomeNodesFailed, UsageError
from clusterctl_infra.outputs import Inventory

from clusterctl.copying.between_nodes import Givers
from clusterctl.copying.broadcast import Broadcast, is_worth_a_tree
from clusterctl.copying.copied import COPY_ERRORS, Copied, reason
from clusterctl.copying.files import Content, content_of
from clusterctl.copying.one_copy import download, upload
from clusterctl.copying.partial import KeptParts
from clusterctl.copying.place import Download, NodeFile, Transfer, Upload, has_node_logins
from clusterctl.copying.progress import Progress
from clusterctl.copying.remote_files import RemoteFiles
from clusterctl.output import Output
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failure_hints import not_reached
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.single.transport import NodeConnection
from clusterctl.text.node_set import fold_numbers

AT_A_TIME = 8
"""How many nodes are served at a time: more would only share this computer's CPU (for encryption) and network."""
SHOW_S = 0.2

Ended = queue.SimpleQueue[Copied | BaseException]


@dataclass(frozen=True, kw_only=True)
class Copying:
    """What all copies of one command share."""

    inventory: Inventory
    keys: LoginKeys
    deadlines: Deadlines
    contents: Mapping[Path, Content]
    """The size and digest of every source that is on this computer."""
    progress: Progress
    kept: KeptParts


def copy_all(
    todo: Sequence[Transfer], inventory: Inventory, *, keys: LoginKeys, deadlines: Deadlines, output: Output
) -> int:
    """Makes all copies and returns 0, or 4 if some of several failed.

    Raises the error of a copy that is the only one, and UsageError for a source that is not on this computer.
    """
    copies = carry_out(todo, inventory, keys=keys, deadlines=deadlines, output=output)
    failed = [copied for copied in copies if copied.failure is not None]
    if failed and len(todo) == 1:
        raise copy_error(failed[0], inventory)
    return SomeNodesFailed.exit_code if failed else 0


def carry_out(
    todo: Sequence[Transfer], inventory: Inventory, *, keys: LoginKeys, deadlines: Deadlines, output: Output
) -> list[Copied]:
    """Makes all copies and returns how each ended; `output` shows each end as it comes.

    Raises UsageError for a source that is not on this computer.
    """
    progress = Progress(len(todo))
    copying = Copying(
        inventory=inventory,
        keys=keys,
        deadlines=deadlines,
        contents=_contents(todo, inventory),
        progress=progress,
        kept=KeptParts(),
    )
    ended: Ended = queue.SimpleQueue()
    trees, direct = split_transfers(todo, copying.contents, has_node_logins=has_node_logins(inventory))
    waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    for group in direct:
        waiting.put(partial(_copy_to_node, group, copying, ended.put))
    for _ in range(min(AT_A_TIME, len(direct))):
        _start(waiting, ended)
    if trees:
        one_by_one: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        for tree in trees:
            one_by_one.put(partial(_copy_by_tree, tree, copying, ended.put))
        _start(one_by_one, ended)
    try:
        return _awaited(ended, len(todo), progress, output)
    finally:
        for sentence in copying.kept.settle():
            output.note(sentence)


def split_transfers(
    todo: Iterable[Transfer], contents: Mapping[Path, Content], *, has_node_logins: bool
) -> tuple[list[list[Upload]], list[list[Transfer]]]:
    """(uploads that go from node to node, by file; transfers between here and a node, by node). Pure."""
    by_source: dict[Path | NodeFile, list[Upload]] = {}
    by_node: dict[int, list[Transfer]] = {}
    for transfer in todo:
        if isinstance(transfer, Upload):
            by_source.setdefault(transfer.source, []).append(transfer)
        else:
            by_node.setdefault(transfer.node.slot, []).append(transfer)
    trees = []
    for source, uploads in by_source.items():
        if isinstance(source, NodeFile) or (
            has_node_logins and is_worth_a_tree(len(uploads), contents[source].size_bytes)
        ):
            trees.append(uploads)
        else:
            for upload in uploads:
                by_node.setdefault(upload.node.slot, []).append(upload)
    return trees, list(by_node.values())


def _start(waiting: queue.SimpleQueue[Callable[[], None]], ended: Ended) -> None:
    """Starts a thread that carries out what is in `waiting`; an unexpected exception goes into `ended`."""

    def work() -> None:
        try:
            while True:
                waiting.get_nowait()()
        except queue.Empty:
            return
        except BaseException as e:  # noqa: BLE001 the caller's thread raises it
            ended.put(e)

    threading.Thread(target=work, daemon=True, name="copy").start()


def _contents(todo: Sequence[Transfer], inventory: Inventory) -> Mapping[Path, Content]:
    """Size and digest of each source on this computer, each read once. Raises UsageError, ClusterctlError."""
    contents = {}
    for path in dict.fromkeys(each.source for each in todo if isinstance(each, Upload)):
        if not isinstance(path, Path):
            continue
        if path.is_dir():
            raise UsageError(f"{path} is a folder, and cp without -r copies files", hint=_with_r(path, todo, inventory))
        if path.exists() and not path.is_file():  # a pipe, for example, can be read once, and a copy reads twice
            raise UsageError(f"{path} is no file; cp copies files")
        look = f"ls -l {shlex.quote(str(path.parent))}"
        try:
            contents[path] = content_of(path)
        except FileNotFoundError as e:
            raise UsageError(f"{path}: there is no such file here", hint=look) from e
        except OSError as e:
            message = f"{path} cannot be read here: {str(e.strerror).lower()}"
            raise ClusterctlError(message, hint=look) from e
    return contents


def _with_r(path: Path, todo: Sequence[Transfer], inventory: Inventory) -> str:
    """The command that copies the folder: `clusterctl cp -r src 0-3:/scratch/ --cluster train`.

    For machines of --inventory, which -r does not support, the one that shows the help.
    """
    if not inventory.cluster_id:
        return "clusterctl cp --help"
    asked = [upload for upload in todo if isinstance(upload, Upload) and upload.source == path]
    there = "" if asked[0].remote == "." else asked[0].remote
    target = f"{fold_numbers(upload.node.slot for upload in asked)}:{there}"
    return shlex.join(["clusterctl", "cp", "-r", str(path), target, "--cluster", inventory.cluster])


def _copy_to_node(group: Sequence[Transfer], copying: Copying, on_end: Callable[[Copied], None]) -> None:
    left = list(group)
    try:
        with (
            NodeConnection.open(copying.inventory, group[0].node, copying.deadlines, keys=copying.keys) as connection,
            connection.sftp() as sftp,
        ):
            files = RemoteFiles(connection, sftp)
            while left:
                on_end(_copied_directly(left.pop(0), files, copying))
    except NodeFailure as failure:
        for transfer in left:
            on_end(Copied(transfer=transfer, failure=failure))


def _copied_directly(transfer: Transfer, files: RemoteFiles, copying: Copying) -> Copied:
    try:
        if isinstance(transfer, Download):
            arrival = download(transfer, files, copying.progress, copying.kept)
        else:
            assert isinstance(transfer.source, Path)
            content = copying.contents[transfer.source]
            give = partial(files.resume_write, source=transfer.source, size_bytes=content.size_bytes)
            arrival = upload(transfer, content, files, give, copying.progress)
        return Copied(transfer=transfer, arrival=arrival)
    except COPY_ERRORS as e:
        return Copied(transfer=transfer, failure=reason(e, transfer.remote))


def _copy_by_tree(uploads: Sequence[Upload], copying: Copying, on_end: Callable[[Copied], None]) -> None:
    source = uploads[0].source
    try:
        content = copying.contents[source] if isinstance(source, Path) else _content_there(source, copying)
    except COPY_ERRORS as e:
        assert isinstance(source, NodeFile)
        for each in uploads:
            on_end(Copied(transfer=each, failure=reason(e, source.path), source_node=source.node))
        return
    givers = Givers(inventory=copying.inventory, keys=copying.keys, deadlines=copying.deadlines)
    Broadcast(uploads, content, givers, copying.progress).run(on_end)


def _content_there(source: NodeFile, copying: Copying) -> Content:
    with (
        NodeConnection.open(copying.inventory, source.node, copying.deadlines, keys=copying.keys) as connection,
        connection.sftp() as sftp,
    ):
        return RemoteFiles(connection, sftp).content(source.path)


def _awaited(ended: Ended, count: int, progress: Progress, output: Output) -> list[Copied]:
    """Waits for all transfers, shows the progress meanwhile, and returns how each ended."""
    copies: list[Copied] = []
    while len(copies) < count:
        try:
            item = ended.get(timeout=SHOW_S)
        except queue.Empty:
            output.live(progress.text())
            continue
        if isinstance(item, BaseException):
            raise item
        progress.done()
        copies.append(item)
        if item.arrival is not None:
            output.note(f"[{item.transfer.node.name}] {item.arrival.message}")
        elif count > 1:
            output.note(f"[{item.node.name}] {_words(item, item.node.name)}")
    return copies


def _words(copied: Copied, name: str) -> str:
    failure = copied.failure
    return failure.message_under(name) if isinstance(failure, NodeFailure) else str(failure)


def copy_error(copied: Copied, inventory: Inventory) -> ClusterctlError:
    """The failure of one copy, as the error that a command ends with."""
    node, failure = copied.node, copied.failure
    if isinstance(failure, NodeFailure):
        return not_reached(failure, inventory, node)
    return ClusterctlError(f"{node.name}: {failure}")
