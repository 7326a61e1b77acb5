"""The folders of this computer that stand for the contents of file systems. SIMULATED: no network is involved."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path


class Shares:
    """One folder for each file system, named by its id; machines see all of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def make(self, id: str) -> None:
        """Makes an empty file system; nothing happens if it exists."""
        (self._folder / id).mkdir(parents=True, exist_ok=True)

    def remove(self, id: str) -> None:
        """Removes a file system with all that is in it; nothing happens if it is gone."""
        shutil.rmtree(self._folder / id, ignore_errors=True)

    def keep_only(self, ids: Iterable[str]) -> None:
        """Removes all folders but those of these file systems."""
        known = set(ids)
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if path.name not in known:
                self.remove(path.name)
