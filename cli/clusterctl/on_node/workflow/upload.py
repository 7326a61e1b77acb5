"""Copies a task's files into a mounted bucket, file by file, and overwrites nothing.

mountpoint-s3 writes a new file from its beginning to its end, and changes, renames and deletes none (its
doc/SEMANTICS.md, read 2026-11); so a file is there once it is whole, and a folder may be there in part.
"""

from __future__ import annotations

import filecmp
import os
import re
import shutil
from pathlib import Path
from typing import Callable, Iterator, List, Tuple

CHUNK_BYTES = 8 * 1024 * 1024
FileFilter = Callable[[str], bool]
"""Whether a file is wanted, by its path relative to the folder."""


class BadExpression(Exception):
    """A regular expression that the Python of `submit` takes, and the node's older one does not."""


class NotUploaded(Exception):
    """Why something is not in the bucket."""


def file_filter(regex: str) -> FileFilter:
    """The filter of a regex, as in OSMO: it must match from the path's beginning on (`re.match`); '' takes every file.

    OSMO's src/lib/data/storage/common.py, list_local_files (read 2026-11). Raises BadExpression.
    """
    if not regex:
        return lambda path: True
    try:
        compiled = re.compile(regex)
    except re.error as e:
        raise BadExpression("regex %r: not a regular expression for this node's Python: %s" % (regex, e)) from e
    return lambda path: compiled.match(path) is not None


def upload(source: Path, target: Path, wanted: FileFilter) -> Tuple[int, List[str]]:
    """Copies a folder's wanted files, or one file; how many, and what was left out: neither a file nor a folder.

    A link to a file is copied as that file; a link to a folder is left out. Raises OSError, NotUploaded.
    """
    if source.is_file():
        if not wanted(source.name):
            return 0, []
        _put(source, target / source.name)
        return 1, []
    if not source.is_dir():
        raise NotUploaded("%s is not there" % source)
    count, left_out = 0, []
    for path, relative in entries(source):
        if not wanted(relative):
            continue
        if not path.is_file():
            left_out.append(relative)
            continue
        _put(path, target / relative)
        count += 1
    return count, left_out


def files_in_words(count: int) -> str:
    """`1 file`, `7 files`."""
    return "1 file" if count == 1 else "%d files" % count


def entries(source: Path) -> Iterator[Tuple[Path, str]]:
    """Everything in a folder but folders, each with its path relative to the folder; links are not followed."""
    for folder, folders, names in os.walk(str(source)):
        for name in sorted([*names, *(each for each in folders if os.path.islink(os.path.join(folder, each)))]):
            path = Path(folder, name)
            yield path, str(path.relative_to(source))


def _put(path: Path, goal: Path) -> None:
    if goal.exists():
        if goal.is_file() and filecmp.cmp(str(path), str(goal), shallow=False):
            return  # an earlier start of the task has put it there
        raise NotUploaded("%s is there already and is not the same; nothing is overwritten" % goal)
    goal.parent.mkdir(parents=True, exist_ok=True)
    with path.open("rb") as stream, goal.open("xb") as there:
        shutil.copyfileobj(stream, there, CHUNK_BYTES)
        there.flush()
        os.fsync(there.fileno())  # by which mountpoint-s3 says whether the file is in the bucket
