"""Versions of a folder in a mounted bucket: of a dataset, of what a task has put out, of a checkpoint.

On shared storage mkdir(2) gives a number to one task alone, and rename(2) makes a version whole at once. A bucket that
mountpoint-s3 mounts has neither: its folders are made on one node only, and nothing is renamed (its doc/SEMANTICS.md,
read 2026-11). So a version is a folder that only one job writes, as its name has the job's, and a mark, written last: a
version without one is not complete. A number is a version's place among the marks, which sort by the time at which
they were written.
"""

from __future__ import annotations

import json
import os
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import List, Mapping, Tuple

from clusterctl.on_node.workflow.upload import FileFilter, upload

MARKS = "clusterctl-versions"
"""The folder of the marks, beside those of the versions."""
MARK = re.compile(r"(\d{8}T\d{6}\.\d{6}Z)_([a-z0-9-]{1,100})")
STAMP = "%Y%m%dT%H%M%S.%fZ"
NUMBER = re.compile(r"[1-9]\d{0,8}")
"""The number of a version; on shared storage it is the folder's name."""


class NoVersion(Exception):
    """Why there is no such version."""


def keep_version(
    source: Path, dataset: Path, name: str, words: Mapping[str, object], wanted: FileFilter
) -> Tuple[int, List[str]]:
    """Copies the wanted files of a folder, or one file, as the version `name`; how many, and what was left out.

    `words`: what else its mark says. Raises OSError, NotUploaded; then there is no mark, and so no version.
    """
    count, left_out = upload(source, dataset / name, wanted)
    marks = dataset / MARKS
    marks.mkdir(parents=True, exist_ok=True)
    mark = marks / ("%s_%s" % (_next_stamp(dataset, datetime.now(timezone.utc)), name))
    with mark.open("x") as file:
        json.dump({**words, "files": count}, file)
        file.flush()
        os.fsync(file.fileno())
    return count, left_out


def complete_versions(dataset: Path) -> List[str]:
    """The names of the versions that are complete, the oldest, number 1, first."""
    return [name for _, name in _marks(dataset)]


def version_folder(dataset: Path, version: str) -> Path:
    """The folder of a version by its number or name, or of the newest for ''; it is not there if no file is in it.

    Raises NoVersion.
    """
    names = complete_versions(dataset)
    if not version and names:
        return dataset / names[-1]
    if NUMBER.fullmatch(version) and int(version) <= len(names):
        return dataset / names[int(version) - 1]
    if version in names:
        return dataset / version
    if not names:
        raise NoVersion("%s: no version of it is complete yet" % dataset)
    raise NoVersion("%s: no version %s; there are 1 to %d" % (dataset, version, len(names)))


def has_versions(folder: Path) -> bool:
    """Whether versions were kept in this folder."""
    return (folder / MARKS).is_dir()


def _marks(dataset: Path) -> List[Tuple[str, str]]:
    """Stamp and name of each mark, in their order."""
    try:
        found = [MARK.fullmatch(path.name) for path in (dataset / MARKS).iterdir()]
    except FileNotFoundError:
        return []
    return sorted((mark[1], mark[2]) for mark in found if mark is not None)


def _next_stamp(dataset: Path, now: datetime) -> str:
    """The time now, or just after the newest mark: nodes' clocks differ, and numbers that were given must stay."""
    newest = max((stamp for stamp, _ in _marks(dataset)), default="")
    stamp = now.strftime(STAMP)
    if stamp > newest:
        return stamp
    known = datetime.strptime(newest, STAMP).replace(tzinfo=timezone.utc)
    return (known + timedelta(microseconds=1)).strftime(STAMP)
