"""How a rank ended, as its parent wrote it: read with care, since the job's own user may write there, too."""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import Any

MOST_BYTES = 64 * 1024
LAST_LINES = 20
LONGEST_LINE = 2000
"""How many characters of a line are kept; the log has all of it."""
LONGEST_ERROR = 4000
MOST_CODE, MOST_SIGNAL, MOST_RANK = 255, 64, 1 << 20
FAILED = 1
"""The exit code of a rank that has none, and no signal."""


def rank_end(path: Path, uid: int) -> dict[str, Any]:
    """How the rank ended. Raises OSError, ValueError for a file that does not say that."""
    return checked_end(parsed(own_bytes(path, uid)))


def rank_parent(path: Path, uid: int) -> tuple[int, int]:
    """The process that runs the rank, as (pid, start). Raises OSError, ValueError."""
    try:
        pid, start = parsed(own_bytes(path, uid))
        return int(pid), int(start)
    except TypeError as e:
        raise ValueError("%s: no process" % path) from e


def parsed(content: bytes) -> Any:
    """The JSON of a file that the job's user may have written. Raises ValueError, also for too many levels."""
    try:
        return json.loads(content)
    except RecursionError as e:
        raise ValueError("JSON of too many levels") from e


def own_bytes(path: Path, uid: int, most_bytes: int = MOST_BYTES) -> bytes:
    """The first `most_bytes` of a file of this user's. Raises OSError, ValueError for anything else.

    A link would have the supervisor read, as root, what the job may not, and a pipe would hold it up.
    """
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(file, "rb") as stream:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid != uid:
            raise ValueError("%s: not the job's own file" % path)
        return stream.read(most_bytes)


def checked_end(words: Any) -> dict[str, Any]:
    """The known fields, each of its type. Raises ValueError where one is missing or of another type."""
    try:
        code, signal, error, at_s = words["code"], words["signal"], words.get("error"), float(words["at_s"])
        if not math.isfinite(at_s):
            raise ValueError("%r is no instant" % (at_s,))
        return {
            "rank": _within(words["rank"], MOST_RANK),
            "local_rank": _within(words["local_rank"], MOST_RANK),
            "at_s": at_s,
            "code": (None if signal else FAILED) if code is None else _within(code, MOST_CODE),
            "signal": None if signal is None else _within(signal, MOST_SIGNAL),
            "lines": [str(line)[:LONGEST_LINE] for line in list(words["lines"])[-LAST_LINES:]],
            "error": None if error is None else str(error)[:LONGEST_ERROR],
        }
    except (LookupError, TypeError, AttributeError, OverflowError) as e:
        raise ValueError("not how a rank ended: %s" % e) from e


def _within(value: Any, most: int) -> int:
    number = int(value)
    if not 0 <= number <= most:
        raise ValueError("%d is not between 0 and %d" % (number, most))
    return number
