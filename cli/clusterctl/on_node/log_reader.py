"""Prints lines of logs as JSON, each with the place to go on from: sent to the node as it stands, and run there.

Python 3.9, standard library only, and one file, as it is sent in one piece.

argv[1] is a JSON object: `sources` (name → {"files": […]} or {"journal": […]}), `follow`, `since_s`, `tail` (only so
many last lines), `grep`, `places` (source → place of the last line that arrived; of files: path → place),
`patience_s` (a source that gives nothing for so long is told of, and not waited for). In a file's path, variables of
the node's environment ($NODE_RANK) and patterns (*.log) are expanded here.

Prints `{"now": unix}` first, then `[source, place, time, is exact, text, file, shared]`: `shared` where other nodes may
have the file, too. The time is the journal's own; for files that of the reading while following, and while history is
read the file's last change, which is not exact. An empty object now and then finds out whether anybody still reads.
`{"source": …, "trouble": …}` is for the person; `missing`: there is nothing of it here; `over`: nor will there be.
"""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, BinaryIO

HISTORY_BYTES = 1024 * 1024
LONGEST_LINE = 64 * 1024
LOOK_S = 0.25
BEAT_S = 1.0
MOST_ENTRIES = 20000
SHORT_S = 10.0
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
        """(place, changed at, line) for each whole line since the last call; with `is_last` an unfinished one too."""
        if self._file is None:
            try:
                self._begin()
            except OSError:
                return
        yield from self._read_on()
        while self._is_replaced():
            yield from self._read_on()  # what came between the last reading and the rotation
            if self._rest:
                yield from self._split(b"\n")
            self._open(self._path, 0)
            yield from self._read_on()
        if is_last and self._rest:
            yield from self._split(b"\n")

    def close(self) -> None:
        """Lets go of the file."""
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
        """Opens the file where its history begins."""
        size = os.stat(self._path).st_size
        start = max(0, size - HISTORY_BYTES)
        self._open(self._path, start)
        assert self._file is not None
        if self._tail:
            kept = b"".join(self._file.read(size - start).splitlines(True)[-self._tail :])
            start = size - len(kept)
            self._tail = 0
        elif start:
            start += len(self._file.readline())
            self.is_cut = True
        self._offset = start
        self._file.seek(start)

    def _open(self, path: str, offset: int) -> None:
        self.close()
        self._file = open(path, "rb")  # noqa: SIM115 open as long as the program follows it
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
            self._offset += len(self._rest)
            line, self._rest = self._rest, b""
            yield "%d:%d" % (self._inode, self._offset), changed_s, line.decode(errors="replace")

    def _is_replaced(self) -> bool:
        """Another file has the name now, or this one was emptied."""
        try:
            now = os.stat(self._path)
        except OSError:
            return False
        return now.st_ino != self._inode or now.st_size < self._offset


class FoundFiles:
    """What the words of one source mean on this node: files, by path."""

    def __init__(self, words: list[str], places: dict[str, str], tail: int, root: str = "/") -> None:
        self._words, self._places, self._tail = words, places, tail
        environment = lines_of(os.path.join(root, "etc/clusterctl/env.list"))
        self._variables = dict(line.split("=", 1) for line in environment if "=" in line)
        self._shared = shared_mounts(root)
        self.files: dict[str, LogFile] = {}
        self.readable = False

    def look(self) -> list[str]:
        """Takes in the files that are there now; gives back what is not, or cannot be read."""
        troubles, is_first = [], not self.files
        for word in self._words:
            paths, trouble = expanded(word, self._variables)
            troubles += [trouble] if trouble else []
            for path in paths:
                absence = absence_of_file(path)
                troubles += [path + " " + absence] if absence else []
                self.readable |= not absence
                if path not in self.files:  # one that comes later is read from its beginning
                    tail = self._tail if is_first else 0
                    self.files[path] = LogFile(path, self._places.get(path, ""), tail)
        return troubles

    def is_shared(self, path: str) -> bool:
        """Other nodes may have the same file under this path."""
        whole = os.path.realpath(path)
        return any(whole.startswith(mount.rstrip("/") + "/") for mount in self._shared)


def expanded(word: str, variables: dict[str, str]) -> tuple[list[str], str]:
    """The paths that a word means on this node, and why it means none or not all."""
    for name in [plain or braced for plain, braced in VARIABLE.findall(word)]:
        if name not in variables:
            return [], "%s: there is no $%s in this node's environment" % (word, name)
    path = VARIABLE.sub(lambda match: variables[match[1] or match[2]], word)
    if not glob.has_magic(path) or os.path.exists(path):
        return [path], ""
    found = sorted((match for match in glob.glob(path) if os.path.isfile(match)), key=os.path.getmtime)
    many = "%s: %d files match, the newest %d are read" % (path, len(found), MOST_FILES)
    none = "" if found else "%s: no file matches" % path
    return sorted(found[-MOST_FILES:]), many if len(found) > MOST_FILES else none


def lines_of(path: str) -> list[str]:
    """The lines of a small file; none where it is not there, or not ours to read."""
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


class Printer:
    """Lines to stdout, one writer at a time; only those that match."""

    def __init__(self, grep: str) -> None:
        self._lock = threading.Lock()
        self._wanted = re.compile(grep) if grep else None

    def line(self, row: list[Any]) -> None:
        if self._wanted is None or self._wanted.search(row[4]):
            self.put(row)

    def put(self, row: object) -> None:
        with self._lock:
            sys.stdout.write(json.dumps(row, separators=(",", ":")) + "\n")

    def flush(self) -> None:
        with self._lock:
            sys.stdout.flush()


class Reader:
    """All sources, each read by a thread of its own."""

    def __init__(self, asked: dict[str, Any], printer: Printer) -> None:
        self._asked = asked
        self._printer = printer
        self._children: list[subprocess.Popen[bytes]] = []
        self._moved_at: dict[str, float] = {}  # source → when it last gave something, until its history is read

    def run(self) -> None:
        """Returns when all sources are at their end or given up, or nobody reads any more."""
        threads = {}
        for name, source in self._asked["sources"].items():
            self._moved_at[name] = time.monotonic()
            threads[name] = threading.Thread(target=self._guarded, args=(name, source), daemon=True)
            threads[name].start()
        try:
            while threads:
                name, thread = next(iter(threads.items()))
                thread.join(BEAT_S)
                threads = {name: thread for name, thread in threads.items() if thread.is_alive()}
                for stuck in self._stuck():
                    told = "%s gave nothing for %g s; does its file system hang?" % (stuck, self._asked["patience_s"])
                    self._tell(stuck, told, is_missing=True)
                    if not self._asked["follow"]:
                        threads.pop(stuck, None)
                if self._asked["follow"]:
                    self._printer.put({})
                    self._printer.flush()
            self._printer.flush()
        except BrokenPipeError:
            pass
        for child in self._children:
            child.kill()

    def _stuck(self) -> list[str]:
        """Sources that have given nothing for too long, each once."""
        now = time.monotonic()
        stuck = [name for name, at in list(self._moved_at.items()) if now - at > self._asked["patience_s"]]
        for name in stuck:
            self._moved_at.pop(name, None)
        return stuck

    def _moved(self, name: str) -> None:
        if name in self._moved_at:
            self._moved_at[name] = time.monotonic()

    def _guarded(self, name: str, source: dict[str, list[str]]) -> None:
        try:
            if "files" in source:
                self._read_files(name, source["files"])
            else:
                self._read_journal(name, source["journal"])
        except BrokenPipeError:
            return
        except FileNotFoundError as e:
            self._tell(name, "there is no %s here" % e.filename, is_missing=True, is_over=True)
        except Exception as e:  # noqa: BLE001 one source's end must not be the others'; the person is told
            self._tell(name, "%s: %s" % (type(e).__name__, e), is_missing=True)
        finally:
            self._moved_at.pop(name, None)

    def _read_files(self, name: str, patterns: list[str]) -> None:
        places = json.loads(self._asked["places"].get(name) or "{}")
        found = FoundFiles(patterns, places, self._asked["tail"])
        for trouble in found.look():
            waits = "; waiting for it" if self._asked["follow"] else ""
            self._tell(name, trouble + waits, is_missing=not found.readable)
        is_live = False
        while True:
            for path, file in found.files.items():
                for place, changed_s, line in file.lines(not self._asked["follow"]):
                    at_s = time.time() if is_live else changed_s
                    self._printer.line([name, place, at_s, is_live, line, path, found.is_shared(path)])
                    self._moved(name)
                if file.is_cut and not is_live:
                    self._tell(name, path + ": only its last MiB was read")
            self._printer.flush()
            if not self._asked["follow"]:
                return
            is_live = True
            self._moved_at.pop(name, None)
            time.sleep(LOOK_S)
            found.look()

    def _read_journal(self, name: str, options: list[str]) -> None:
        absence, is_over = absence_in_journal(options)
        is_followed = self._asked["follow"]
        if absence and is_followed:
            self._tell(name, absence, is_missing=True, is_over=is_over)
            if is_over:
                return
        if is_followed:
            self._moved_at.pop(name, None)  # a journal may be silent for days
        while True:
            code, said, count = self._journal_to_its_end(name, options)
            if is_followed and (count or not said):
                time.sleep(BEAT_S)  # somebody has killed it: it goes on where it was
                continue
            if (code and said) or (absence and not count):
                self._tell(name, said if code and said else absence, is_missing=True, is_over=bool(code and said))
            return

    def _journal_to_its_end(self, name: str, options: list[str]) -> tuple[int, str, int]:
        """Its exit code, its last words, and how many lines it had."""
        count = 0
        argv = self._journal_argv(name, options)
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._children.append(child)
        assert child.stdout is not None
        assert child.stderr is not None
        for raw in child.stdout:
            count += 1
            row = json.loads(raw)
            message = row.get("MESSAGE")
            if isinstance(message, list):  # bytes that are not text
                message = bytes(message).decode(errors="replace")
            self._asked["places"][name] = row["__CURSOR"]
            at_s = int(row["__REALTIME_TIMESTAMP"]) / 1e6
            self._printer.line([name, row["__CURSOR"], at_s, True, str(message), "", False])
            self._moved(name)
            if self._asked["follow"]:
                self._printer.flush()
        said = child.stderr.read().decode(errors="replace").strip()
        self._children.remove(child)
        return child.wait(), said.splitlines()[-1] if said else "", count

    def _tell(self, name: str, trouble: str, is_missing: bool = False, is_over: bool = False) -> None:
        self._printer.put({"source": name, "trouble": trouble, "missing": is_missing, "over": is_over})

    def _journal_argv(self, name: str, options: list[str]) -> list[str]:
        argv = ["journalctl", "-q", "--no-pager", "-o", "json", "--all", "--output-fields=MESSAGE", *options]
        cursor, since_s, tail = self._asked["places"].get(name), self._asked["since_s"], self._asked["tail"]
        if cursor:
            argv.append("--after-cursor=" + cursor)
        elif since_s is not None:
            argv.append("--since=@%d" % since_s)
        argv += ["-n", str(tail) if tail and not cursor else "all" if self._asked["follow"] else str(MOST_ENTRIES)]
        return [*argv, "-f"] if self._asked["follow"] else argv


def absence_of_file(path: str) -> str:
    """Why nothing can be read of it now; else empty."""
    if os.path.isdir(path) or os.access(path, os.R_OK):
        return "is a folder" if os.path.isdir(path) else ""
    return "cannot be read" if os.path.exists(path) else "is not there"


def absence_in_journal(options: list[str], root: str = "/") -> tuple[str, bool]:
    """Why the journal may have nothing, else empty; and whether it never will: no journal, a container without a kernel
    log. A unit may still come."""
    journals = ("run/systemd/journal/socket", "run/log/journal/*/*.journal", "var/log/journal/*/*.journal")
    if not any(glob.glob(os.path.join(root, pattern)) for pattern in journals):
        return "no journal is kept on this machine", True
    # systemd writes this file in containers, and only there (https://systemd.io/CONTAINER_INTERFACE, 2026-11-21).
    if options == ["-k"] and os.path.exists(os.path.join(root, "run/systemd/container")):
        return "no kernel log: this machine is a container, and its kernel is its host's", True
    if options[:1] == ["-u"]:
        known = subprocess.run(["systemctl", "cat", "--", options[1]], capture_output=True, timeout=SHORT_S)
        if known.returncode:
            return "no unit is called %s here" % options[1], False
    return "", False


def main(asked: dict[str, Any]) -> None:
    """Prints what was asked for, and ends the process."""
    printer = Printer(asked.get("grep") or "")
    printer.put({"now": time.time()})
    printer.flush()
    Reader(asked, printer).run()
    os._exit(0)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
