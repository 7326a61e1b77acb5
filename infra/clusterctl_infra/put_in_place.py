"""Writing a file so that it appears whole, or not at all; an error names it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from clusterctl_infra.private_home import PRIVATE_FILE


def put_in_place(path: Path, text: str, *, mode: int = PRIVATE_FILE, keeps_owner: bool = False) -> None:
    """Writes the file, in a folder that exists; it is on the disk when this returns. Raises OSError with its name.

    `keeps_owner`: when root writes, for instance through sudo, the file keeps its owner; a new one gets the folder's.
    """
    # Without tempfile: importing it takes 4 ms of each start of a command on nodes.
    fresh = path.parent / f".{path.name}.{os.urandom(8).hex()}"
    is_made = False
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
        is_made = True
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            # Through the descriptor: whoever owns the folder could put a link to another file under the name meanwhile.
            if keeps_owner and os.geteuid() == 0:
                _give_to_owner(descriptor, path)
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.replace(fresh, path)
    except BaseException as e:
        if is_made:
            fresh.unlink(missing_ok=True)
        if isinstance(e, OSError):
            raise OSError(e.errno, e.strerror, str(path)) from e
        raise


def _give_to_owner(descriptor: int, path: Path) -> None:
    owner = (path if path.exists() else path.parent).stat()
    with contextlib.suppress(PermissionError):  # a share on which root is nobody
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
