"""Copies a task's outputs into a mounted bucket, file by file, and overwrites nothing.

mountpoint-s3 writes a new file from its beginning to its end, and changes, renames and deletes none (its
doc/SEMANTICS.md, read 2026-11); so a file is there once it is whole, and a folder may be there in part.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from pathlib import Path
from typing import List, Tuple

CHUNK_BYTES = 8 * 1024 * 1024


class NotUploaded(Exception):
    """Why something is not in the bucket."""


def upload(source: Path, target: Path) -> Tuple[int, List[str]]:
    """How many files of the folder are there now, and what is neither a file nor a folder. Raises OSError, NotUploaded.

    A link to a file goes there as that file; one to a folder does not.
    """
    if not source.is_dir():
        raise NotUploaded("%s is not there" % source)
    count, left_out = 0, []
    for folder, folders, names in os.walk(str(source)):
        for name in sorted([*names, *(each for each in folders if os.path.islink(os.path.join(folder, each)))]):
            path = Path(folder, name)
            if not path.is_file():
                left_out.append(str(path.relative_to(source)))
                continue
            _put(path, target / path.relative_to(source))
            count += 1
    return count, left_out


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
