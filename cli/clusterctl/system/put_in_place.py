"""A file that appears whole, or not at all; the failure names it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def put_in_place(path: Path, text: str, *, mode: int) -> None:
    """Writes the file, in a folder that is there. Raises OSError with its name, which the kernel leaves out.

    Root, as with sudo, leaves the file to whom it belonged, and a new one to whom the folder belongs.
    """
    descriptor, fresh = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(fresh, mode)
        if os.geteuid() == 0:
            owner = (path if path.exists() else path.parent).stat()
            with contextlib.suppress(PermissionError):  # a share on which root is nobody
                os.chown(fresh, owner.st_uid, owner.st_gid)
        os.replace(fresh, path)
    except OSError as e:
        os.unlink(fresh)
        raise OSError(e.errno, e.strerror, str(path)) from e
