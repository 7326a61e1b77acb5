"""Temporary files, and errors about them that name their folder, as the kernel's own errors do not."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import IO, Any  # Any: a module that is loaded on use


def temporary_file() -> IO[bytes]:
    """A file without a name, in the system's folder for temporary files."""
    file: IO[bytes] = _tempfile().TemporaryFile()
    return file


@contextlib.contextmanager
def named_folder() -> Iterator[None]:
    """Adds the folder's name to an OSError about a file that has no name."""
    try:
        yield
    except OSError as e:
        raise OSError(e.errno, e.strerror, _tempfile().gettempdir()) from e


def _tempfile() -> Any:
    return importlib.import_module("tempfile")
