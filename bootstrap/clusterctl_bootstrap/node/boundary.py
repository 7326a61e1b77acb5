"""The parts of the watch, each run so that its failure stops no other; `status` tells which of them fail."""

import contextlib
import json
from pathlib import Path
from typing import Any, Callable, Dict

from clusterctl_bootstrap.node import status
from clusterctl_bootstrap.node.received import printable

KEY = "watch"
"""In status.json: part → why it fails; not there, or null, while none does."""


class Boundary:
    """The errors of the current round, and of the one before."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.found: Dict[str, str] = {}
        self.before: Dict[str, str] = {}
        self.is_noted = bool(_noted(root))

    def run(self, part: str, step: Callable[[], Any], otherwise: Any = None) -> Any:
        """What the step gives; `otherwise` where it fails, whatever the reason."""
        try:
            return step()
        except Exception as e:  # noqa: BLE001  # this is the boundary
            self.found[part] = printable("%s: %s" % (type(e).__name__, e))
            return otherwise

    def note(self) -> None:
        """Ends a look: tells the journal what has begun to fail, and `status` all that fails."""
        with contextlib.suppress(OSError):
            for part in sorted(set(self.found) - set(self.before)):
                print("<4>the watch: %s: %s" % (part, self.found[part]), flush=True)
        self.before, self.found = self.found, {}
        if not self.before and not self.is_noted:
            return
        with contextlib.suppress(Exception):  # a full disk: at the next look
            # Compared at each look, since a boot that begins forgets what was noted before.
            if _noted(self.root) != (self.before or None):
                status.note(self.root, **{KEY: self.before or None})
            self.is_noted = bool(self.before)


def _noted(root: Path) -> Any:
    return json.loads(status.line(root)).get(KEY)
