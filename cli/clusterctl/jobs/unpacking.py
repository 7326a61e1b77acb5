"""Unpacks an archive that a node made, so that nothing in it leads out of the folder, or fills the disk or memory."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from clusterctl.jobs.member_filter import written_as
from clusterctl.on_node.job.pack import OVER_LIMIT
from clusterctl.text.quantities import thousands

NO_LIMIT = 1 << 62
MOST_FILES = 1_000_000
MOST_HEADER_BYTES = 1024 * 1024
"""The longest header of one file: tarfile reads headers into memory."""
MOST_NAME = 4096
"""Characters: PATH_MAX of Linux."""
MOST_DEPTH = 100
MOST_LEFT_OUT = 100
"""How many left-out names are reported."""
STAGING_PREFIX = ".clusterctl-cp-"


@dataclass(frozen=True, kw_only=True)
class Unpacked:
    """What was unpacked from an archive, and what was left out."""

    files: int = 0
    size_bytes: int = 0
    error: str | None = None
    left_out: tuple[str, ...] = ()
    """Names of what was not written here, such as a link out of the folder; at most `MOST_LEFT_OUT`."""


@dataclass(frozen=True, kw_only=True)
class Moved:
    """What was not moved from one folder into another."""

    left_out: tuple[str, ...] = ()
    """Names of folders that in the target are links that lead out of it."""
    in_the_way: tuple[str, ...] = ()
    """What has the name of something of another kind: `latest is a folder here, and a link on the node`."""


class TooLarge(ValueError):
    """An archive has more than was allowed; the text is the sentence for the person."""


class _Metered:
    """The archive's stream, which raises TooLarge when more is read from it than was allowed."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._left_bytes = 0

    def allow(self, size_bytes: int) -> None:
        """From now on this many bytes may be read, and a header."""
        self._left_bytes = size_bytes + MOST_HEADER_BYTES

    def read(self, size_bytes: int) -> bytes:
        """Raises TooLarge."""
        chunk = self._stream.read(size_bytes)
        self._left_bytes -= len(chunk)
        if self._left_bytes < 0:
            raise TooLarge(f"the archive has a header of more than {thousands(MOST_HEADER_BYTES)} bytes")
        return chunk


def unpack(archive: IO[bytes], folder: Path, *, most_bytes: int = NO_LIMIT, most_files: int = MOST_FILES) -> Unpacked:
    """Unpacks the archive's files below `folder`. After an error, `folder` has the files that came before it."""
    archive.seek(0)
    files = size_bytes = 0
    left_out: list[str] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with gzip.GzipFile(fileobj=archive, mode="rb") as unzipped:
            for tar, member in _members(cast(IO[bytes], unzipped)):
                size_bytes += member.size
                if size_bytes > most_bytes:
                    raise TooLarge(f"{OVER_LIMIT} {thousands(most_bytes)} bytes")
                if files >= most_files:
                    raise TooLarge(f"more than {thousands(most_files)} files")
                if _extract(tar, member, folder):
                    files += 1
                elif len(left_out) < MOST_LEFT_OUT:
                    left_out.append(member.name[:MOST_NAME])
    except TooLarge as e:
        return Unpacked(files=files, size_bytes=size_bytes, error=str(e))
    except (OSError, EOFError, ValueError, LookupError, OverflowError, tarfile.TarError) as e:
        # A name with a NUL raises ValueError, a time that the clock cannot hold OverflowError.
        why = os.strerror(e.errno) if isinstance(e, OSError) and e.errno else str(e) or "it broke off"
        return Unpacked(files=files, size_bytes=size_bytes, error=f"not all came: {why}")
    return Unpacked(files=files, size_bytes=size_bytes, left_out=tuple(left_out))


def _members(unzipped: IO[bytes]) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Each of the archive's entries; the caller may extract it before it takes the next one. Raises TooLarge."""
    metered = _Metered(unzipped)
    metered.allow(0)
    with tarfile.open(fileobj=cast(IO[bytes], metered), mode="r|") as tar:
        tar.extraction_filter = lambda member, _: member  # each was looked at before
        for member in tar:
            if tar.pax_headers:
                raise TooLarge("the archive has headers for all of its files, which a node of ours does not write")
            if member.size < 0:
                raise TooLarge("the archive has a file of negative size")
            metered.allow(member.size)
            following = tar.offset
            yield tar, member
            metered.allow(max(0, following - unzipped.tell()))  # what was not extracted has to be read past
            tar.members = []  # type: ignore[attr-defined] # else each one stays in memory


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> bool:
    """Extracts the entry unless it leads out of the folder, is too deep, or is no file, folder or link.

    Returns whether it was written.
    """
    parts = Path(member.name).parts
    if max(len(member.name), len(member.linkname)) > MOST_NAME or len(parts) > MOST_DEPTH:
        return False
    if member.issym() and not _is_plain(member.linkname):
        return False
    written = written_as(member, folder)
    if written is not None:
        tar.extract(written, folder)
    return written is not None


def _is_plain(link: str) -> bool:
    """Whether `..` stands only at the beginning of a link's target.

    After a name, which may be another link, `..` leads somewhere else than it seems to; that deceived tarfile before
    Python 3.11.13, 3.12.11 and 3.13.4 (CVE-2025-4517, read 2026-11-26).
    """
    parts = Path(link).parts
    up = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
    return ".." not in parts[up:]


@contextmanager
def staging_folder(target: Path) -> Iterator[Path]:
    """A hidden folder on the target's file system, which is gone afterwards. Raises OSError."""
    place = target if target.is_dir() else target.parent
    place.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=STAGING_PREFIX, dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def move_into(source: Path, target: Path) -> Moved:
    """Moves all that is in the folder `source` into the folder `target`, replacing files and links of the same names.

    Nothing is written through a link in `target`. Raises OSError.
    """
    target.mkdir(parents=True, exist_ok=True)
    left_out: list[str] = []
    in_the_way: list[str] = []
    for base, folders, files in os.walk(source):
        below = Path(base).relative_to(source)
        links = [name for name in folders if (Path(base) / name).is_symlink()]
        for name in (*files, *links):
            if _is_folder(target / below / name):
                kind = "a link" if (Path(base) / name).is_symlink() else "a file"
                in_the_way.append(f"{below / name} is a folder here, and {kind} on the node")
            else:
                os.replace(Path(base) / name, target / below / name)
        for name in [name for name in folders if name not in links]:
            place = target / below / name
            if place.is_symlink() and _leads_out(place, target):
                left_out.append(str(below / name))
                folders.remove(name)
            elif place.is_file() and not place.is_symlink():
                in_the_way.append(f"{below / name} is a file here, and a folder on the node")
                folders.remove(name)
            else:
                if place.is_symlink():
                    place.unlink()  # as `latest`, which an earlier copy left, and which is a folder now
                place.mkdir(exist_ok=True)
    return Moved(left_out=tuple(left_out), in_the_way=tuple(in_the_way))


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _leads_out(link: Path, folder: Path) -> bool:
    return not Path(os.path.realpath(link)).is_relative_to(os.path.realpath(folder))
