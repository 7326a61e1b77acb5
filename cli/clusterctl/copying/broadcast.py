"""Copies one file to many nodes: from here to one of them, then from node to node, ever more of them at a time."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path

from clusterctl.copying.between_nodes import Givers, NotGiven
from clusterctl.copying.copied import COPY_ERRORS, Copied, reason
from clusterctl.copying.files import Content, CopyFailed
from clusterctl.copying.one_copy import Arrival, Give, WrongContent, bring, target_path, there_already
from clusterctl.copying.place import NodeFile, Upload
from clusterctl.copying.progress import Progress
from clusterctl.copying.remote_files import RemoteFiles
from clusterctl.ssh.single.transport import NodeConnection

LEAST_NODES = 3
LEAST_BYTES = 16_000_000
"""For a smaller file, the logins between nodes take longer than they save: a 1 Gbit/s line moves eight times as much in
a second."""
AT_A_TIME = 32
"""How many nodes copy at a time; each has a connection from here, which mostly only watches and checks."""


def is_worth_a_tree(nodes: int, size_bytes: int) -> bool:
    """Whether to copy the file from node to node, rather than from here to each node."""
    return nodes >= LEAST_NODES and size_bytes >= LEAST_BYTES


class Broadcast:
    """One file on its way to all its nodes."""

    def __init__(self, uploads: Sequence[Upload], content: Content, givers: Givers, progress: Progress) -> None:
        source = uploads[0].source
        self._uploads = uploads
        self._content = content
        self._givers = givers
        self._progress = progress
        self._holders = Holders(source) if isinstance(source, Path) else Holders(None, [source])

    def run(self, on_end: Callable[[Copied], None]) -> None:
        """Returns when each node has the file or has failed; `on_end` is called for each node, from several threads."""
        waiting: queue.SimpleQueue[Upload] = queue.SimpleQueue()
        for upload in self._uploads:
            waiting.put(upload)
        troubles: list[BaseException] = []

        def work() -> None:
            try:
                while True:
                    on_end(self._copied(waiting.get_nowait()))
            except queue.Empty:
                return
            except BaseException as e:  # noqa: BLE001 handed to the thread that waits, which raises it
                troubles.append(e)

        count = min(AT_A_TIME, len(self._uploads))
        threads = [threading.Thread(target=work, daemon=True, name=f"broadcast {number}") for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if troubles:
            raise troubles[0]

    def _copied(self, upload: Upload) -> Copied:
        try:
            return Copied(transfer=upload, arrival=self._copy(upload))
        except COPY_ERRORS as e:
            return Copied(transfer=upload, failure=reason(e, upload.remote))

    def _copy(self, upload: Upload) -> Arrival:
        givers = self._givers
        with (
            NodeConnection.open(givers.inventory, upload.node, givers.deadlines, keys=givers.keys) as connection,
            connection.sftp() as sftp,
        ):
            files = RemoteFiles(connection, sftp)
            target = target_path(upload, files)
            if (message := there_already(files, target, self._content)) is None:
                return self._brought(upload, target, files)
            self._holders.add(NodeFile(node=upload.node, path=target))
            return Arrival(path=target, message=message)

    def _brought(self, upload: Upload, target: str, files: RemoteFiles) -> Arrival:
        """Has the holders of the file send it, one after the other, until one of them succeeds."""
        failed: dict[int, str] = {}
        while (source := self._holders.take(failed)) is not None:
            is_lost = False
            try:
                bring(target, self._content, files, self._giving(source, upload, files), self._progress)
                self._holders.add(NodeFile(node=upload.node, path=target))
                return Arrival(path=target, message=_arrival_message(target, source, failed))
            except (NotGiven, WrongContent) as e:
                if isinstance(source, Path):
                    raise
                is_lost = isinstance(e, NotGiven) and e.is_lost
                failed[source.node.slot] = str(e)
            except OSError as e:
                if not failed:
                    raise
                # SFTP cannot say that a disk is full; an earlier holder's shell may have said so.
                raise CopyFailed(f"{reason(e, target)}; before that, {'; '.join(failed.values())}") from e
            finally:
                self._holders.has_given(source, is_lost=is_lost)
        raise CopyFailed("; ".join(failed.values()) or "no node that has the file is left to copy it from")

    def _giving(self, source: Path | NodeFile, upload: Upload, files: RemoteFiles) -> Give:
        if isinstance(source, Path):
            return partial(files.resume_write, source=source, size_bytes=self._content.size_bytes)
        size_bytes = self._content.size_bytes
        return partial(self._givers.give, source=source, size_bytes=size_bytes, node=upload.node, files=files)


def _arrival_message(target: str, source: Path | NodeFile, failed: dict[int, str]) -> str:
    """`/scratch/w.bin from train-0`, and which holders had failed to send it."""
    way = "" if isinstance(source, Path) else f" from {source.node.name}"
    return f"{target}{way}" + (f" (before that, {'; '.join(failed.values())})" if failed else "")


TRIES = 2
"""After this many holders have failed to send the file to a node, this computer sends it: holders are not the cause."""
FROM_HERE = 8
"""How many nodes get the file from here at a time, once holders have failed."""


class Holders:
    """Says which holder sends the file to the next node; this computer does so if no holder can.

    Each holder sends to one node at a time, and the one that has been free longest goes first. So the number of holders
    doubles from turn to turn. If a holder is lost, the node that it was sending to asks for another one.
    """

    def __init__(self, here: Path | None, nodes: Iterable[NodeFile] = ()) -> None:
        self._here = here
        self._from_here = 0
        self._free = deque(nodes)
        self._giving: set[int] = set()
        self._changed = threading.Condition()

    def take(self, tried: Collection[int]) -> Path | NodeFile | None:
        """Waits for a holder that is free, and returns it, or the file here. `tried`: slots that have failed already.

        None: no holder is left.
        """
        with self._changed:
            while True:
                if self._is_turn_of_here(tried):
                    self._from_here += 1
                    return self._here
                if (
                    found := next((holder for holder in self._free if holder.node.slot not in tried), None)
                ) is not None:
                    self._free.remove(found)
                    self._giving.add(found.node.slot)
                    return found
                if not self._giving and not self._from_here and self._here is None:
                    return None
                self._changed.wait()

    def has_given(self, source: Path | NodeFile, *, is_lost: bool = False) -> None:
        """Marks a sender as free for the next receiver; a lost one sends nothing more."""
        with self._changed:
            if isinstance(source, Path):
                self._from_here -= 1
            else:
                self._giving.discard(source.node.slot)
                if not is_lost:
                    self._free.append(source)
            self._changed.notify_all()

    def add(self, holder: NodeFile) -> None:
        """Notes that one more node has the file."""
        with self._changed:
            known = self._giving | {holder.node.slot for holder in self._free}
            if holder.node.slot not in known:
                self._free.append(holder)
            self._changed.notify_all()

    def _is_turn_of_here(self, tried: Collection[int]) -> bool:
        if self._here is None:
            return False
        if len(tried) >= TRIES:
            return self._from_here < FROM_HERE
        is_anybody = bool(self._giving) or any(holder.node.slot not in tried for holder in self._free)
        return not is_anybody and self._from_here == 0
