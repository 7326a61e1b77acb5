"""The register of processes that asked to be told before this machine ends.

A process asks by an empty file in /run/clusterctl/warn whose name is its process id. Everybody may write there, so each
look removes entries that ask for nothing, and a user who makes more than anybody needs is shut out.
"""

import contextlib
import os
import struct
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, Iterable, List, Set

from clusterctl_bootstrap.node import guard
from clusterctl_bootstrap.node.outside import Outside
from clusterctl_bootstrap.node.warning import tell

REGISTER = "run/clusterctl/warn"
ROOM = "size=1m,nr_inodes=16384,mode=1777,nosuid,nodev,noexec"
"""The folder is a file system of its own: what everybody may write to must not fill /run, where the guard writes."""
MOST_OF_A_USER = 2048
"""The most entries of one user; a machine has at most a few hundred processors."""
FOLDERS_AT_A_LOOK = 500
REMOVE_S = 5
ACL, VERSION, NOBODY = "system.posix_acl_access", 2, 0xFFFFFFFF
OWNER, USER, GROUP, MASK, OTHERS = 0x01, 0x02, 0x04, 0x10, 0x20
"""The words of an access control list, as the kernel reads it (include/uapi/linux/posix_acl_xattr.h)."""


def open_register(root: Path, outside: Outside) -> None:
    """Makes the folder in which everybody may ask, each for their own processes."""
    folder = root / REGISTER
    folder.mkdir(parents=True, exist_ok=True)
    if guard.applies(root) and not os.path.ismount(str(folder)):
        outside.run(["mount", "-t", "tmpfs", "-o", ROOM, "clusterctl-warn", str(folder)])
    folder.chmod(0o1777)


def asking(root: Path, scan: Any = os.scandir) -> List[int]:
    """The processes that asked and live; what else lies in the register is removed, whatever it is.

    An entry counts for processes of its owner alone. Raises OSError where there is no register.
    """
    found, folders = [], []
    made_by: Counter[int] = Counter()
    makers_of_folders: Set[int] = set()
    with scan(str(root / REGISTER)) as entries:
        for entry in list(entries):
            with contextlib.suppress(OSError):  # gone by now
                owner = entry.stat(follow_symlinks=False).st_uid
                made_by[owner] += 1
                if entry.is_dir(follow_symlinks=False):
                    makers_of_folders.add(owner)
                    folders.append(entry.path)
                elif made_by[owner] <= MOST_OF_A_USER and _asks(root, entry, owner):
                    found.append(int(entry.name))
                else:
                    os.unlink(entry.path)
    _remove(folders[:FOLDERS_AT_A_LOOK])
    too_many = {owner for owner, number in made_by.items() if number > MOST_OF_A_USER}
    _shut_out(root, (too_many | makers_of_folders) - {0, os.geteuid()})
    return sorted(found)


def may_ask(owner: int, of_process: int) -> bool:
    """Whether an entry of one user counts for another user's process: a signal ends a process that does not expect
    it.
    """
    return owner in (0, of_process)


def access_list(shut_out: Iterable[int]) -> bytes:
    """An access control list that opens the folder to all but these users, who may not even look."""
    rows = [(OWNER, 7, NOBODY), *((USER, 0, user) for user in sorted(shut_out))]
    rows += [(GROUP, 7, NOBODY), (MASK, 7, NOBODY), (OTHERS, 7, NOBODY)]
    return struct.pack("<I", VERSION) + b"".join(struct.pack("<HHI", *row) for row in rows)


def users_in(acl: bytes) -> Set[int]:
    """The users that an access control list names."""
    return {user for kind, _, user in struct.iter_unpack("<HHI", acl[4:]) if kind == USER}


def _asks(root: Path, entry: Any, owner: int) -> bool:
    process = root / "proc" / entry.name
    is_number = entry.name.isascii() and entry.name.isdecimal()
    return is_number and process.is_dir() and may_ask(owner, process.stat().st_uid)


def _remove(folders: List[str]) -> None:
    """Removes the folders with `rm`, which handles any depth."""
    if folders:
        subprocess.run(
            ["rm", "-rf", "--", *folders],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=REMOVE_S,
            check=False,
        )


def _shut_out(root: Path, users: Set[int]) -> None:
    """Shuts these users out of the folder until this machine boots anew."""
    folder = str(root / REGISTER)
    try:
        before = users_in(os.getxattr(folder, ACL))
    except OSError:  # nobody is shut out, or the file system keeps no such lists
        before = set()
    if users - before:
        os.setxattr(folder, ACL, access_list(users | before))
        for user in sorted(users - before):
            tell(root, "user %d filled /%s and may not ask for signals until this machine boots" % (user, REGISTER))
