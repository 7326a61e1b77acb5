"""A file that appears whole, or not at all, for its owner alone."""

from __future__ import annotations

import os
from pathlib import Path


def put_in_place(path: Path, text: str) -> None:
    """Writes the file. Its folder must exist, and only one writer may do this at a time. Raises OSError.

    A writer that is killed leaves at most a `.new` beside it, which the next one replaces. There is no fsync:
    machines and regions do not outlive a power cut.
    """
    fresh = path.with_name(f"{path.name}.new")
    with open(fresh, "w", encoding="utf-8", opener=_private) as file:
        file.write(text)
    os.replace(fresh, path)


def _private(path: str, flags: int) -> int:
    """Opens a file for its owner alone. clusterctl_infra has this too, but supervisors can import only this package."""
    return os.open(path, flags, 0o600)
