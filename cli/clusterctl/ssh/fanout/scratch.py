"""The folder for what is kept for a while: a failure to write there names it, which the kernel leaves out."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator


@contextlib.contextmanager
def named_folder() -> Iterator[None]:
    """Raises OSError with the folder's name for one without a name."""
    try:
        yield
    except OSError as e:
        tempfile = importlib.import_module("tempfile")  # loaded on use: 4 ms of a start
        raise OSError(e.errno, e.strerror, tempfile.gettempdir()) from e
