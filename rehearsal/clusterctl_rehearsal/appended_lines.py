"""Files to which lines are only ever appended. A full disk or a kill may leave half a line, which damages no other."""

from __future__ import annotations

import os
from pathlib import Path

from clusterctl_infra.private_home import private_opener


def append_line(path: Path, line: str) -> None:
    """Appends a line; if the last one was written only in part, ends that one first. Raises OSError."""
    with open(path, "ab+", opener=private_opener) as file:
        is_whole = file.seek(0, os.SEEK_END) == 0
        if not is_whole:
            file.seek(-1, os.SEEK_END)
            is_whole = file.read(1) == b"\n"
        file.write((b"" if is_whole else b"\n") + line.encode() + b"\n")


def appended_lines(path: Path) -> list[str]:
    """The lines, in the order in which they were written, also those written only in part; none without the file.

    Raises OSError.
    """
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
