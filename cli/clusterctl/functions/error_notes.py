"""Adds notes to errors, so that a Python traceback also shows the problems and the command that helps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clusterctl_infra.errors import ClusterctlError, ConfigError


@contextmanager
def notes_on_errors() -> Iterator[None]:
    """Adds to a ClusterctlError what the command line prints below its message, and raises it again."""
    try:
        yield
    except ClusterctlError as e:
        problems = e.problems if isinstance(e, ConfigError) else ()
        notes = [*(f"  {problem.strip()}" for problem in problems), *([f"  next: {e.hint}"] if e.hint else [])]
        for note in notes:
            if note not in getattr(e, "__notes__", ()):
                e.add_note(note)
        raise
