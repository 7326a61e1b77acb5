"""The home is for its owner alone: its files hold keys, and commands that clusterctl runs (as root if root calls it).

Whoever creates it first (command line, region, engine's plugins) creates it with mode 0700, whatever the umask is.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterctl_infra.errors import UsageError
from clusterctl_infra.home_path import home_path, other_home
from clusterctl_infra.names import HOME_VARIABLE, PRICES_FILE

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600
FOLDERS = {"inventory", "keys", "ledger", "log", "observed", "rehearsal", "runs", "warm", "ssh_config", PRICES_FILE}
"""Names of entries in a home; every home in use has some of them."""
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, kw_only=True)
class Person:
    """Who runs the program; with sudo also who called it."""

    user_id: int
    calling_id: int | None = None

    def may_own(self, owner_id: int) -> bool:
        """Whether this person may use a home that `owner_id` owns: their own or root's, as root can write anywhere."""
        is_caller = self.user_id == 0 and owner_id == self.calling_id
        return owner_id in (0, self.user_id) or is_caller

    def may_change(self, owner_id: int) -> bool:
        """Whether this person can change the mode of a folder that `owner_id` owns."""
        return self.user_id in (0, owner_id)


def this_person(environ: Mapping[str, str]) -> Person:
    """The person who runs this process, by its user id and `SUDO_UID`."""
    calling = environ.get("SUDO_UID", "")
    return Person(user_id=os.geteuid(), calling_id=int(calling) if calling.isdecimal() else None)


def secure_home(environ: Mapping[str, str], person: Person | None = None) -> str | None:
    """Closes the home to other users and returns a sentence about what changed; None when nothing did or there is none.

    Raises UsageError where another user owns it, or where others could have put files into it.
    """
    path, person = home_path(environ), person or this_person(environ)
    try:
        found = path.stat()
    except OSError:  # it is missing, or whoever uses it reports the error
        return None
    if not stat.S_ISDIR(found.st_mode):
        return None
    mode, is_ours = stat.S_IMODE(found.st_mode), person.may_change(found.st_uid) and looks_like_a_home(path)
    refuse_home(path, owner_id=found.st_uid, mode=mode, person=person, hint=other_home(environ), is_ours=is_ours)
    if not mode & _OPEN_TO_OTHERS or not is_ours:
        return None
    try:
        path.chmod(mode & ~_OPEN_TO_OTHERS)
    except OSError:  # a read-only disk, or a share on which root is nobody: others can read it, and write nothing
        return None
    return f"{path} could be read by other users (mode {mode:04o}); it is now for its owner alone"


def looks_like_a_home(path: Path) -> bool:
    """Whether the folder is empty or clusterctl's; one named by mistake, such as /srv, must not be closed to others."""
    try:
        names = {entry.name for entry in path.iterdir()}
    except OSError:
        return False
    return not names or not names.isdisjoint(FOLDERS)


def refuse_home(path: Path, *, owner_id: int, mode: int, person: Person, hint: str, is_ours: bool = True) -> None:
    """Raises UsageError where somebody else could decide what clusterctl finds in the home.

    `is_ours`: the folder is clusterctl's alone, and its mode the person's to change.
    """
    if not person.may_own(owner_id):
        risk = f"{path} is owned by user {owner_id}, who could have clusterctl run commands as user {person.user_id}"
        raise UsageError(risk, hint=hint)
    if mode & _WRITABLE_BY_OTHERS:
        risk = f"{path} can be written by other users (mode {mode:04o}), who could have clusterctl run commands as you"
        if is_ours:
            raise UsageError(f"{risk}: look at what is in it first", hint=f"chmod go-rwx {shlex.quote(str(path))}")
        inner = path / "clusterctl"
        raise UsageError(f"{risk}: use a folder in it", hint=f"export {HOME_VARIABLE}={shlex.quote(str(inner))}")


def make_private_folder(folder: Path) -> None:
    """Creates the folder and those above it that are missing, each for its owner alone."""
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)  # raises FileExistsError for a file


def private_opener(path: str, flags: int) -> int:
    """For `open(…, opener=private_opener)`: a file that it creates is for its owner alone."""
    return os.open(path, flags, PRIVATE_FILE)
