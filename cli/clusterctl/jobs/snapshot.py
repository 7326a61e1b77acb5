"""The folder that a job is started from, as one archive that is the same bytes for the same content."""

from __future__ import annotations

import fnmatch
import gzip
import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from clusterctl_infra.errors import UsageError

IGNORE_FILE = ".clusterctlignore"
IGNORED = (
    ".git",
    ".venv",
    "venv",
    "node_modules",
    "__pycache__",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".pulumi",
    "*.pyc",
)
"""What is not sent from a folder that is in no git repository."""
SECRET = (".env", ".env.*", "*.pem", "*.key", "id_rsa", "id_ed25519", "id_ecdsa", ".netrc", "credentials")
"""Patterns of files that usually contain secrets."""
EXAMPLES = ("*.example", "*.sample", "*.template")
ASK_BYTES = 500 * 1024 * 1024
GIT_S = 60
HINT = "clusterctl run --help"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The chosen files of a folder, relative to it."""

    folder: Path
    files: tuple[str, ...]
    size_bytes: int


def take_snapshot(folder: Path, *, including: Collection[str]) -> Snapshot:
    """The files to send: what git tracks, and untracked files that git does not ignore.

    Without git or a repository: all files but those of `IGNORED` and of .clusterctlignore. `including`: untracked files
    that look like secrets and are sent nevertheless. Raises UsageError for any others that look like secrets.
    """
    if not folder.is_dir():
        raise UsageError(f"--workdir {folder}: no such folder", hint=HINT)
    listed = _by_git(folder)
    tracked, untracked = ((), walked(folder)) if listed is None else listed
    secret = sorted(name for name in untracked if looks_secret(name) and name not in including)
    if secret:
        named = ", ".join(secret[:5]) + (f" and {len(secret) - 5} more" if len(secret) > 5 else "")
        raise UsageError(
            f"the folder {folder.absolute()} would go to the nodes, and may hold secrets: {named}",
            hint=f"echo {secret[0]} >> {'.gitignore' if listed is not None else IGNORE_FILE}, or --include {secret[0]}",
        )
    files = sent_files(folder, (*tracked, *untracked))
    return Snapshot(folder=folder, files=files, size_bytes=sum((folder / n).lstat().st_size for n in files))


def sent_files(folder: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Those of `names` that are files or links now, sorted; a name below a link to a folder is left out.

    Only the link itself is sent. (git still names the files of a tracked folder after a link has replaced the folder.)
    """
    found = set(names)
    above = {each for name in found for each in _folders_of(name)}
    links = {each for each in above if (folder / each).is_symlink()}
    return tuple(sorted(name for name in found if links.isdisjoint(_folders_of(name)) and _is_sent(folder / name)))


def write_archive(snapshot: Snapshot, stream: IO[bytes]) -> str:
    """Writes the archive to `stream`, without owners and times, and returns the SHA-256 of its content in hex.

    Raises UsageError for a file that cannot be read.
    """
    digest = hashlib.sha256()
    with (
        gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=1, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in snapshot.files:
            member, content = _member(snapshot.folder, name)
            tar.addfile(member, io.BytesIO(content) if member.isreg() else None)
            head = f"{name}\0{member.type!r}{member.mode}{len(content)}\0"
            digest.update(os.fsencode(head) + content)
    return digest.hexdigest()


def _member(folder: Path, name: str) -> tuple[tarfile.TarInfo, bytes]:
    """A file's entry in the archive, and its content; for a link the content is the link's target."""
    path, member = folder / name, tarfile.TarInfo(name)
    try:
        if path.is_symlink():
            member.type, member.linkname = tarfile.SYMTYPE, os.readlink(path)
            return member, os.fsencode(member.linkname)
        content = path.read_bytes()
        member.size = len(content)
        member.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
    except OSError as e:
        raise UsageError(f"{path} cannot be read ({e.strerror}), and would go to the nodes", hint=HINT) from e
    return member, content


def looks_secret(name: str) -> bool:
    """Whether a file's name says that it holds a secret."""
    base = PurePosixPath(name).name
    return _matches(base, SECRET) and not _matches(base, EXAMPLES)


def is_ignored(name: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern fits the path below the folder, or one of its parts."""
    path = PurePosixPath(name)
    return _matches(name, patterns) or any(_matches(part, patterns) for part in path.parts)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _by_git(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """(tracked files, untracked files); None if the folder is in no repository.

    Raises UsageError if git cannot list the files of a repository: without the list, ignored files would be sent too.
    """
    found = []
    for which in (("--cached",), ("--others", "--exclude-standard")):
        argv = ["git", "-C", str(folder), "ls-files", "-z", *which]
        try:
            done = subprocess.run(argv, capture_output=True, timeout=GIT_S, stdin=subprocess.DEVNULL)
        except FileNotFoundError:
            refuse_without_git(folder)
            return None
        except subprocess.TimeoutExpired as e:
            raise UsageError(f"{folder}: git did not list its files within {GIT_S} s", hint="git status") from e
        if done.returncode and _repository_of(folder) is not None:
            error = os.fsdecode(done.stderr).strip()[-300:]
            raise UsageError(f"{folder}: git does not list its files: {error}", hint="git status")
        if done.returncode:
            return None
        found.append(tuple(name for name in os.fsdecode(done.stdout).split("\0") if name))
    return found[0], found[1]


def refuse_without_git(folder: Path) -> None:
    """Raises UsageError if the folder is in a repository: only git knows which files are ignored.

    A folder with a .clusterctlignore itself says what is not sent.
    """
    repository = _repository_of(folder)
    if repository is not None and not (folder / IGNORE_FILE).is_file():
        raise UsageError(
            f"{folder.absolute()} is in the git repository {repository}, and git is not installed here: what git "
            "ignores would be sent too",
            hint=f"install git, or list what is not to be sent in {folder.absolute() / IGNORE_FILE}",
        )


def _repository_of(folder: Path) -> Path | None:
    places = (folder.resolve(), *folder.resolve().parents)
    return next((place for place in places if (place / ".git").exists()), None)


def walked(folder: Path) -> tuple[str, ...]:
    """The files and links below a folder in no repository, but for those that are never sent or that it ignores."""
    patterns = [*IGNORED, *_own_patterns(folder)]
    found = []
    for base, folders, files in os.walk(folder):
        above = Path(base).relative_to(folder)
        folders[:] = [name for name in folders if not is_ignored((above / name).as_posix(), patterns)]
        links = [name for name in folders if (Path(base) / name).is_symlink()]  # os.walk takes them for folders
        found += [(above / name).as_posix() for name in (*files, *links)]
    return tuple(name for name in found if not is_ignored(name, patterns))


def _own_patterns(folder: Path) -> list[str]:
    try:
        lines = (folder / IGNORE_FILE).read_text().splitlines()
    except FileNotFoundError:
        return []
    return [line.strip().strip("/") for line in lines if line.strip() and not line.startswith("#")]


def _folders_of(name: str) -> Iterator[str]:
    """The folders above a name: `a/b` and `a` for `a/b/c`."""
    while name := name.rpartition("/")[0]:
        yield name


def _is_sent(path: Path) -> bool:
    """Whether it is a file or a link: a tracked file may have been deleted here, and a submodule is a folder."""
    return path.is_symlink() or path.is_file()
