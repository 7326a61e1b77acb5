"""A file that appears whole, or not at all; the failure names it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from clusterctl_infra.private_home import PRIVATE_FILE


def put_in_place(path: Path, text: str, *, mode: int = PRIVATE_FILE, keeps_owner: bool = False) -> None:
    """Writes the file, in a folder that is there; it is on the disk when this returns. Raises OSError with its name.

    `keeps_owner`: root, as with sudo, leaves the file to whom it belonged, and a new one to whom the folder belongs.
    """
    fresh: str | None = None
    try:
        descriptor, fresh = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            # By the descriptor: whoever owns the folder could put a link to another file under the name meanwhile.
            if keeps_owner and os.geteuid() == 0:
                _give_to_owner(descriptor, path)
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.replace(fresh, path)
    except BaseException as e:
        if fresh is not None:
            Path(fresh).unlink(missing_ok=True)
        if isinstance(e, OSError):
            raise OSError(e.errno, e.strerror, str(path)) from e
        raise


def _give_to_owner(descriptor: int, path: Path) -> None:
    owner = (path if path.exists() else path.parent).stat()
    with contextlib.suppress(PermissionError):  # a share on which root is nobody
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
