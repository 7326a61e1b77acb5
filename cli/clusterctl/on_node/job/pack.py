"""Files of a job as one archive on stdout: what it wants to keep, or its output and how it went."""

from __future__ import annotations

import gzip
import os
import pwd
import stat
import sys
import tarfile
from pathlib import Path
from typing import IO, Iterable, Iterator, List, Tuple

from clusterctl.on_node.job.job_environment import own_folder
from clusterctl.on_node.job.kept_files import log_rows
from clusterctl.on_node.job.layout import Layout, read_json
from clusterctl.on_node.job.this_process import become_user

WORK, LOGS = "work", "logs"
BUFFER_BYTES = 256 * 1024
OVER_LIMIT = "more than the limit of"
"""Part of the sentence about too many bytes, which a higher `--limit` allows; also used by the computer that asks."""


def answer_pack(words: List[str]) -> int:
    """The verb: writes the archive to stdout, and says on stderr what goes wrong."""
    job, what, path, most_bytes = words
    try:
        pack(Layout(), job, what, path, int(most_bytes), sys.stdout.buffer)
    except (OSError, ValueError, LookupError, tarfile.TarError) as e:
        print("clusterctl: %s" % e, file=sys.stderr, flush=True)
        return 1
    return 0


def pack(layout: Layout, job: str, what: str, path: str, most_bytes: int, stream: IO[bytes]) -> None:
    """Writes a compressed tar archive. `path`, which counts only if `what` is work, is below the job's own folder.

    Files of work that are more than `most_bytes` together are refused before anything is written.

    This process becomes the login user's: the job may have put links in its folders, and root would follow them.
    Raises OSError, ValueError, LookupError, tarfile.TarError.
    """
    spec = read_json(layout.spec(job))
    become_user(pwd.getpwnam(str(spec["user"])))
    if what == WORK:
        refuse_more_than(most_bytes, work_rows(own_folder(layout, spec), path))
    write_rows(work_rows(own_folder(layout, spec), path) if what == WORK else log_rows(layout, job), stream)


def write_rows(rows: Iterable[Tuple[Path, str]], stream: IO[bytes]) -> None:
    """Writes a compressed archive of these files, each under its name. Raises OSError, tarfile.TarError."""
    with gzip.GzipFile(  # noqa: SIM117 one statement for both wants Python 3.10
        fileobj=stream, mode="wb", compresslevel=1
    ) as zipped:
        with tarfile.open(fileobj=zipped, mode="w|", bufsize=BUFFER_BYTES) as tar:
            for file, name in rows:
                _add(tar, file, name)


def work_rows(folder: Path, path: str) -> Iterator[Tuple[Path, str]]:
    """Each file to pack, and its name in the archive. Raises ValueError for a path that leads out of the folder."""
    place = folder / path
    if ".." in Path(path).parts or Path(path).is_absolute():
        raise ValueError("%s leads out of $CLUSTERCTL_JOB_DIR" % path)
    if not place.exists():
        raise ValueError("%s: no such file in $CLUSTERCTL_JOB_DIR (%s)" % (path, folder))
    if place.is_dir() and not place.is_symlink():
        begin = place if place == folder else place.parent
        for base, folders, files in os.walk(place):
            folders.sort()
            links = [name for name in folders if (Path(base) / name).is_symlink()]  # os.walk takes them for folders
            for name in sorted([*files, *links]):
                file = Path(base) / name
                yield file, str(file.relative_to(begin))
    else:
        yield place, place.name


def refuse_more_than(most_bytes: int, rows: Iterable[Tuple[Path, str]]) -> None:
    """Raises ValueError, with their size and the limit, if these files have more bytes."""
    files = size_bytes = 0
    for path, _ in rows:
        try:
            found = path.lstat()
        except OSError:
            continue  # it has gone meanwhile
        files += 1
        size_bytes += found.st_size if stat.S_ISREG(found.st_mode) else 0
    if size_bytes > most_bytes:
        raise ValueError("%d bytes in %d files: %s %d bytes" % (size_bytes, files, OVER_LIMIT, most_bytes))


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    """Adds a file at its present length: logs may grow meanwhile. What is neither file nor link is left out."""
    try:
        if path.is_symlink():
            tar.addfile(tar.gettarinfo(str(path), name))
        elif path.is_file():
            with path.open("rb") as content:
                row = tar.gettarinfo(str(path), name, content)
                row.uid = row.gid = 0
                row.uname = row.gname = ""
                tar.addfile(row, content)
    except FileNotFoundError:
        return  # it has gone meanwhile
