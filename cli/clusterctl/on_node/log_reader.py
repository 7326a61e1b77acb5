"""Prints lines of logs as JSON, each with the place to go on from: sent to the node with log_files.py, and run there.

Python 3.9, standard library only. Nothing of it is kept on the node.

argv[1] is a JSON object: `sources` (name → {"files": […]} or {"journal": […]}), `follow`, `since_s`, `tail` (only this
many last lines), `grep`, `places` (source → place of the last line that arrived; of files: path → place),
`patience_s` (a source silent for this long is reported, and unless followed given up).

Prints `{"now": unix}` first, then `[source, place, time, is exact, text, file, shared]`: `shared` where other nodes may
have the file, too. The time is the journal's own; that of a file's line is when it was read or, for history, when
the file last changed, which is not exact. An empty object now and then finds out whether anybody still reads.
`{"source": …, "trouble": …}` is for the person; `missing`: nothing of the source is here; `over`: nor will it be.
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
from typing import Any

from clusterctl.on_node.log_files import FoundFiles

LOOK_S = 0.25
BEAT_S = 1.0
MOST_ENTRIES = 20000
SHORT_S = 10.0


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
                    why = "%s gave nothing for %g s; does its file system hang?" % (stuck, self._asked["patience_s"])
                    self._tell(stuck, why, is_missing=True)
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
        except Exception as e:  # noqa: BLE001 a source that fails must not end the others; the person is told
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
            code, error, count = self._journal_to_its_end(name, options)
            if is_followed and (count or not error):
                time.sleep(BEAT_S)  # somebody has killed it: go on after the last line
                continue
            if (code and error) or (absence and not count):
                self._tell(name, error if code and error else absence, is_missing=True, is_over=bool(code and error))
            return

    def _journal_to_its_end(self, name: str, options: list[str]) -> tuple[int, str, int]:
        """Reads journalctl's output; returns its exit code, the last line on stderr, and the number of entries."""
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
        error = child.stderr.read().decode(errors="replace").strip()
        self._children.remove(child)
        return child.wait(), error.splitlines()[-1] if error else "", count

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


def absence_in_journal(options: list[str], root: str = "/") -> tuple[str, bool]:
    """Why the journal may have nothing, else empty; and whether it never will: where no journal is kept, and for the
    kernel log of a container. A unit may still be made."""
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
