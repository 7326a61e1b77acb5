"""The files of one source of logs on this node, each read on through rotation and truncation. Sent with log_reader.py.

Python 3.9, standard library only. In a path, variables of the node's environment ($NODE_RANK) and patterns (*.log) are
expanded here.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterator
from typing import BinaryIO

HISTORY_BYTES = 1024 * 1024
LONGEST_LINE = 64 * 1024
BAR_BYTES = 4096  # about forty draws of a bar: four seconds of tqdm, which draws ten times a second at most
MOST_FILES = 100
NETWORK_TYPES = ("nfs", "nfs4", "lustre", "ceph", "cifs", "beegfs", "gpfs", "fuse.mountpoint-s3", "fuse.s3fs")
VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")

Row = tuple[str, float, str]


class LogFile:
    """A file that is read to its end and, when followed, on through rotation and truncation."""

    def __init__(self, path: str, place: str, tail: int) -> None:
        self._path = path
        self._tail = tail
        self._file: BinaryIO | None = None
        self._rest = b""
        self._offset = 0
        self._inode = 0
        self.is_cut = False
        if place:
            inode, _, offset = place.partition(":")
            self._resume(int(inode), int(offset))

    def lines(self, is_last: bool) -> Iterator[Row]:
        """(place, changed at, line) for each whole line since the last call; with `is_last` an unfinished one too.

        A progress bar is one line, however often it is redrawn; while it grows, it is given every `BAR_BYTES`.
        """
        if self._file is None:
            try:
                self._begin()
            except FileNotFoundError:
                self._tail = 0  # all that it has once it appears is new
                return
            except OSError:
                return
        yield from self._read_on()
        while self._is_replaced():
            yield from self._read_on()  # what came between the last reading and the rotation
            if self._rest:
                yield from self._split(b"\n")
            try:
                self._open(self._path, 0)
            except OSError:  # gone again, or not readable yet: the next call tries again
                return
            yield from self._read_on()
        if is_last and self._rest:
            yield from self._split(b"\n")
        elif len(self._rest) > BAR_BYTES:
            yield from self._drawn()

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()

    def _resume(self, inode: int, offset: int) -> None:
        """Opens the very file that the place is in, under whatever name it has now, and goes on there."""
        for path in [self._path, *glob.glob(glob.escape(self._path) + "*")]:
            try:
                found = os.stat(path)
            except OSError:
                continue
            if found.st_ino == inode and found.st_size >= offset:
                self._open(path, offset)
                return
        self._tail = 0

    def _begin(self) -> None:
        """Opens the file at its last `tail` lines, at most `HISTORY_BYTES` before its end."""
        size = os.stat(self._path).st_size
        start = max(0, size - HISTORY_BYTES)
        self._open(self._path, start)
        assert self._file is not None
        read = self._file.read(size - start) if self._tail else b""
        begin = begin_of_last(read, self._tail)
        self._tail = 0
        if begin is None and start:
            self._file.seek(start)
            cut = len(self._file.readline())
            begin = cut if start + cut < size else 0  # where all is one line, its end is better than nothing
            self.is_cut = True
        start += begin or 0
        self._offset = start
        self._file.seek(start)

    def _open(self, path: str, offset: int) -> None:
        file = open(path, "rb")  # noqa: SIM115 open as long as the program follows it
        self.close()
        self._file = file
        self._inode = os.fstat(self._file.fileno()).st_ino
        self._offset = offset
        self._rest = b""
        self._file.seek(offset)

    def _read_on(self) -> Iterator[Row]:
        while self._file is not None:
            block = self._file.read(LONGEST_LINE)
            if not block:
                return
            yield from self._split(block)

    def _split(self, block: bytes) -> Iterator[Row]:
        assert self._file is not None
        changed_s = os.fstat(self._file.fileno()).st_mtime
        *whole, self._rest = (self._rest + block).split(b"\n")
        for line in whole:
            self._offset += len(line) + 1
            yield "%d:%d" % (self._inode, self._offset), changed_s, line.decode(errors="replace")
        if len(self._rest) > LONGEST_LINE:
            self._cut(begin_of_last_drawn(self._rest))  # what was drawn over is not shown, so it need not be kept
        if len(self._rest) > LONGEST_LINE:
            line = self._cut(len(self._rest))
            yield "%d:%d" % (self._inode, self._offset), changed_s, line.decode(errors="replace")

    def _drawn(self) -> Iterator[Row]:
        """The unfinished progress bar without its last redraw, which may be incomplete."""
        assert self._file is not None
        line = self._cut(begin_of_last_drawn(self._rest))
        if line:
            changed_s = os.fstat(self._file.fileno()).st_mtime
            yield "%d:%d" % (self._inode, self._offset), changed_s, line.decode(errors="replace")

    def _cut(self, length: int) -> bytes:
        """Takes the first `length` bytes off the unfinished line."""
        line, self._rest = self._rest[:length], self._rest[length:]
        self._offset += length
        return line

    def _is_replaced(self) -> bool:
        """Whether another file has the name now, or this one was truncated."""
        try:
            now = os.stat(self._path)
        except OSError:
            return False
        return now.st_ino != self._inode or now.st_size < self._offset


def begin_of_last(read: bytes, lines: int) -> int | None:
    """Where the last `lines` lines begin, an unfinished one included; None if there are fewer."""
    begin = len(read) - read.endswith(b"\n")
    for _ in range(lines):
        begin = read.rfind(b"\n", 0, begin)
        if begin < 0:
            return None
    return begin + 1 if lines else None


def begin_of_last_drawn(line: bytes) -> int:
    """Where a line's last redraw begins, at its carriage return; 0 if the line was never redrawn.

    A carriage return at the end does not count: a newline may follow, or nothing.
    """
    return max(0, line.rstrip(b"\r").rfind(b"\r"))


class FoundFiles:
    """The files that the patterns of one source match on this node, by path."""

    def __init__(self, patterns: list[str], places: dict[str, str], tail: int, root: str = "/") -> None:
        self._patterns, self._places, self._tail = patterns, places, tail
        environment = lines_of(os.path.join(root, "etc/clusterctl/env.list"))
        self._variables = dict(line.split("=", 1) for line in environment if "=" in line)
        self._shared = shared_mounts(root)
        self._has_looked = False
        self.files: dict[str, LogFile] = {}
        self.readable = False

    def look(self) -> list[str]:
        """Adds the files that match now; returns why some are missing or cannot be read."""
        troubles = []
        for pattern in self._patterns:
            paths, trouble = expanded(pattern, self._variables)
            troubles += [trouble] if trouble else []
            for path in paths:
                absence = absence_of_file(path)
                troubles += [path + " " + absence] if absence else []
                self.readable |= not absence
                if path not in self.files:  # all of a file that comes later, or during an outage, is new
                    tail = 0 if self._has_looked or self._places else self._tail
                    self.files[path] = LogFile(path, self._places.get(path, ""), tail)
        self._has_looked = True
        return troubles

    def is_shared(self, path: str) -> bool:
        """Whether other nodes may have the same file under this path."""
        whole = os.path.realpath(path)
        return any(whole.startswith(mount.rstrip("/") + "/") for mount in self._shared)


def expanded(pattern: str, variables: dict[str, str]) -> tuple[list[str], str]:
    """The paths that a pattern matches on this node, and why none or not all."""
    for name in [plain or braced for plain, braced in VARIABLE.findall(pattern)]:
        if name not in variables:
            return [], "%s: there is no $%s in this node's environment" % (pattern, name)
    path = VARIABLE.sub(lambda match: variables[match[1] or match[2]], pattern)
    if not glob.has_magic(path) or os.path.exists(path):
        return [path], ""
    dated = [(changed_s, match) for match in glob.glob(path) for changed_s in changes_of(match)]
    found = [match for _, match in sorted(dated)]
    many = "%s: %d files match, the newest %d are read" % (path, len(found), MOST_FILES)
    none = "" if found else "%s: no file matches" % path
    return sorted(found[-MOST_FILES:]), many if len(found) > MOST_FILES else none


def changes_of(path: str) -> list[float]:
    """When the file was changed; empty if it is no file, or has gone meanwhile."""
    try:
        return [os.path.getmtime(path)] if os.path.isfile(path) else []
    except OSError:
        return []


def lines_of(path: str) -> list[str]:
    """The lines of a small file; none if it is missing or unreadable."""
    if not os.access(path, os.R_OK):
        return []
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def shared_mounts(root: str) -> list[str]:
    """Where storage is mounted that other nodes may have, too: what cluster.yaml declares, and network file systems."""
    birth = "".join(lines_of(os.path.join(root, "var/lib/clusterctl/birth.json")))
    declared = json.loads(birth).get("mounts", []) if birth else []
    mounted = [line.split() for line in lines_of(os.path.join(root, "proc/self/mounts"))]
    shared = [mount["path"] for mount in declared if mount["kind"] != "nvme"]
    return shared + [words[1] for words in mounted if words[2] in NETWORK_TYPES]


def absence_of_file(path: str) -> str:
    """Why the file cannot be read; empty if it can."""
    if os.path.isdir(path) or os.access(path, os.R_OK):
        return "is a folder" if os.path.isdir(path) else ""
    return "cannot be read" if os.path.exists(path) else "is not there"
