"""The folder for what is kept for a while: a failure to write there names it, which the kernel leaves out."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import IO, Any  # Any: a module that is loaded on use


def temporary_file() -> IO[bytes]:
    """A file without a name, in the folder for such files."""
    file: IO[bytes] = _tempfile().TemporaryFile()
    return file


@contextlib.contextmanager
def named_folder() -> Iterator[None]:
    """Raises OSError with the folder's name for one without a name."""
    try:
        yield
    except OSError as e:
        raise OSError(e.errno, e.strerror, _tempfile().gettempdir()) from e


def _tempfile() -> Any:
    return importlib.import_module("tempfile")
