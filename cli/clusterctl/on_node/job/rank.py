"""The parent of one rank: passes its output on, keeps it in a bounded file, and writes down how it ended.

A launcher's exit code does not say that (torchrun gives 1 for a rank's 7 and for a rank that was killed), so a job has
succeeded when every rank's parent says so.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import IO, Any, List, Tuple

from clusterctl.on_node.job.job_environment import secret_values
from clusterctl.on_node.job.launchers import LOCAL_RANK_BEHIND
from clusterctl.on_node.job.layout import write_json
from clusterctl.on_node.job.output_log import LINE_BYTES, line_pieces
from clusterctl.on_node.job.output_socket import rank_output
from clusterctl.on_node.job.processes import itself
from clusterctl.on_node.job.rank_end import MOST_BYTES as END_BYTES
from clusterctl.on_node.job.rank_place import rank_variables
from clusterctl.on_node.job.redaction import Redactor, hidden_bytes, redacted
from clusterctl.on_node.job.reserved_space import reserve_space
from clusterctl.on_node.job.this_process import CANNOT_RUN, NOT_FOUND, end_with_parent

LOG_BYTES = 16 * 1024 * 1024
"""The most bytes of a rank's log; the log before it, of the same size, is kept too."""
RESERVED_BYTES = 64 * 1024
"""How much room the log's first file takes before the rank can fill the disk."""
LAST_LINES = 20
LAST_BYTES = 4096
TRACE = re.compile(rb"(?:\[rank\d+\]: *)?(?:frame #\d+: |Exception raised from )")
"""How lines of a C++ stack trace begin: torch 2.11 prints 15 of them, twice, after the error."""
DRAIN_S = 1.0
"""How long output is waited for once the rank has ended: something it left running may hold the pipe."""


def answer_rank(words: List[str]) -> int:
    """The verb: `words` are the ranks' folder, that of secrets, flags, `--`, and the rank's own command."""
    begin = words.index("--")
    folder, secrets, *flags = words[:begin]
    return run_rank(Path(folder), Path(secrets), flags, words[begin + 1 :])


def run_rank(folder: Path, secrets: Path, flags: list[str], command: list[str]) -> int:
    """Runs `command` as this rank; its exit code, or 128 + its signal."""
    end_with_parent()
    place = rank_variables(os.environ)
    rank, local_rank = int(place["RANK"]), int(place["LOCAL_RANK"])
    command = with_local_rank(flags, command, local_rank)
    write_json(folder / ("%d.pid" % rank), itself())
    end = RankEnd(folder, rank, local_rank)
    own = secret_values(secrets)
    hidden = hidden_bytes(own.values())
    environment = {**os.environ, **place, **own}
    stream = rank_output(environment, sys.stdout.buffer)
    try:
        child = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=end_with_parent,  # noqa: PLW1509 no thread has begun yet
        )
    except OSError as e:
        code = NOT_FOUND if isinstance(e, FileNotFoundError) else CANNOT_RUN
        line = "%s: %s" % (command[0], e.strerror)
        stream.write(("%d\t%s\n" % (rank, line)).encode())
        stream.flush()
        end.tell({"code": code, "signal": None, "lines": [line]})
        return code
    _pass_stop_on(child)
    output = RankOutput(rank, folder / ("%d.log" % rank), stream, hidden=hidden)
    reader = threading.Thread(target=output.copy, args=(child.stdout,), daemon=True)
    reader.start()
    status = child.wait()
    reader.join(DRAIN_S)
    output.close()
    number = -status if status < 0 else None
    ended = {"code": None if number else status, "signal": number, "lines": output.last_lines()}
    end.tell({**ended, "error": own_error(hidden)})
    return 128 + number if number else status


def with_local_rank(flags: list[str], command: list[str], local_rank: int) -> list[str]:
    """The command with `--local_rank=N` where a flag says that it wants it."""
    for flag in flags:
        if flag.startswith(LOCAL_RANK_BEHIND):
            place = int(flag[len(LOCAL_RANK_BEHIND) :])
            return [*command[:place], "--local_rank=%d" % local_rank, *command[place:]]
    return command


class RankEnd:
    """The file in which a rank's parent writes how the rank ended; its room on the disk is reserved at once."""

    def __init__(self, folder: Path, rank: int, local_rank: int) -> None:
        self._path = folder / ("%d.json" % rank)
        self._beside = folder / ("%d.end" % rank)
        self._place = {"rank": rank, "local_rank": local_rank}
        self._file = self._beside.open("wb")
        reserve_space(self._file.fileno(), END_BYTES)

    def tell(self, ended: dict[str, Any]) -> None:
        """Writes how the rank ended; readers see all of it or nothing. Raises OSError."""
        with self._file:
            self._file.write(json.dumps({**self._place, "at_s": time.time(), **ended}).encode())
        os.replace(self._beside, self._path)


class RankOutput:
    """Passes what the rank says to `stream`, behind its number, and to its log, and keeps the last lines."""

    def __init__(self, rank: int, log: Path, stream: IO[bytes], *, hidden: Tuple[bytes, ...] = ()) -> None:
        """`hidden`: secrets, which are replaced in all of it."""
        self._hidden = hidden
        self._stream = stream
        self._mark = b"%d\t" % rank
        self._log = log
        self._file = log.open("ab", buffering=0)
        reserve_space(self._file.fileno(), RESERVED_BYTES)
        self._written = self._file.tell()
        self._last: deque[bytes] = deque(maxlen=LAST_LINES)

    def copy(self, stream: IO[bytes]) -> None:
        """Copies the rank's output to its end."""
        redactor = Redactor(self._hidden)
        for piece, is_last in line_pieces(stream, LINE_BYTES):
            line = redactor.feed(piece, is_last=is_last)
            if line is not None:
                self._pass_on(line)

    def close(self) -> None:
        """Closes the log."""
        self._file.close()

    def last_lines(self) -> list[str]:
        """The end of what the rank said, at most `LAST_BYTES`, without empty lines and C++ stack traces."""
        text = b"\n".join(list(self._last))[-LAST_BYTES:]
        return text.decode("utf-8", "replace").split("\n") if text else []

    def _pass_on(self, line: bytes) -> None:
        if line.strip() and not TRACE.match(line):
            self._last.append(line)
        self._keep(line + b"\n")
        try:
            self._stream.write(self._mark + line + b"\n")
            self._stream.flush()
        except OSError:
            pass  # the supervisor is gone, and we shall be soon

    def _keep(self, line: bytes) -> None:
        try:
            if self._written + len(line) > LOG_BYTES:
                self._file.close()
                os.replace(self._log, self._log.with_name(self._log.name + ".1"))
                self._file = self._log.open("ab", buffering=0)
                self._written = 0
            self._written += self._file.write(line) or 0
        except (OSError, ValueError):
            pass  # a full disk must not end the training; the line is in what the supervisor has


def _pass_stop_on(child: subprocess.Popen[bytes]) -> None:
    """The first SIGTERM goes to the rank and what it started, once: launchers and supervisors both send it."""
    asked: list[int] = []

    def stop(number: int, frame: object) -> None:
        if not asked:
            asked.append(number)
            try:
                os.killpg(child.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass  # it has ended

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def own_error(hidden: Tuple[bytes, ...]) -> str | None:
    """What torch's `@record` wrote of the exception, where the script uses it."""
    try:
        found: Any = json.loads(Path(os.environ["TORCHELASTIC_ERROR_FILE"]).read_bytes())
        # Redacted once it is parsed: JSON escapes quotes, backslashes and all but ASCII letters.
        message = str(found["message"]["message"]).encode("utf-8", "replace")
        return redacted(message, hidden).decode("utf-8", "replace")[:LAST_BYTES]
    except (OSError, ValueError, LookupError, TypeError):
        return None
