"""Copies of a task's folder in a bucket, made now and then while its command runs, and once more at its end.

OSMO overwrites the last copy; in a mounted bucket nothing is overwritten, so each copy is a version of its own. A file
that is written to while it is copied may be torn, as in OSMO.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Tuple

from clusterctl.on_node.workflow.bucket_versions import keep_version
from clusterctl.on_node.workflow.upload import NotUploaded, entries, file_filter, files_in_words


class Checkpoint:
    """One folder, or file, and where it is copied to."""

    def __init__(self, words: Mapping[str, Any], say: Callable[[str], None]) -> None:
        self._source = Path(words["path"])
        self._words = words
        self._say = say
        self._wanted = file_filter(words["regex"])
        self._copied: Dict[str, Tuple[int, int]] = {}
        self._count = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def start(self) -> None:
        """Copies from now on, each time `frequency_s` after the copy before has ended."""
        self._thread.start()

    def finish(self) -> bool:
        """Makes the last copy, once one that is under way has ended; True if that failed."""
        self._is_over.set()
        self._thread.join()
        if not self._source.exists():
            self._say("checkpoint: %s is not there" % self._source)
            return True
        return not self._copy()

    def _repeat(self) -> None:
        while not self._is_over.wait(float(self._words["frequency_s"])):
            self._copy()

    def _copy(self) -> bool:
        """Whether what is there now is in the bucket; nothing is copied where nothing has changed."""
        url = self._words["url"]
        try:
            present = self._present()
            if not present or present == self._copied:
                return True
            name = "%s-%d" % (self._words["version"], self._count)
            self._count += 1
            count, _ = keep_version(self._source, Path(self._words["folder"]), name, {}, self._wanted)
        except (OSError, NotUploaded) as e:
            self._say("a checkpoint was not copied: %s: %s" % (url, e))
            return False
        self._copied = present
        self._say("checkpoint: %s is in %s as %s: %s" % (self._source, url, name, files_in_words(count)))
        return True

    def _present(self) -> Dict[str, Tuple[int, int]]:
        """The wanted files, each with its size and when it was changed. Raises OSError."""
        if self._source.is_file():
            found = [(self._source, self._source.name)]
        else:
            found = list(entries(self._source))
        return {relative: _fingerprint(path) for path, relative in found if self._wanted(relative)}


def _fingerprint(path: Path) -> Tuple[int, int]:
    try:
        found = path.stat()
    except OSError:  # a link to nothing or to itself, or gone meanwhile
        return -1, 0
    return found.st_size, found.st_mtime_ns
