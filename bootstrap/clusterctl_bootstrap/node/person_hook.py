"""/etc/clusterctl/hooks: a person's programs, which save what is not saved yet. They delay nothing."""

import os
import subprocess
from pathlib import Path
from typing import Any, Optional, Protocol

from clusterctl_bootstrap.node.hooks import RUN
from clusterctl_bootstrap.node.warning import tell

FOLDER = "etc/clusterctl/hooks/"
PRE_TERMINATE, REBALANCE = "pre-terminate", "rebalance"
LOGS = "var/log/clusterctl/"
MARGIN_S = 10
"""A program has to be done this long before the end: time to see if it was not."""


class Hook(Protocol):
    """A person's program, as those who warn know it."""

    def start(self, limit_s: int, **more: str) -> None:
        """Starts it, if there is one, with `more` in its environment."""

    def is_running(self) -> bool:
        """Whether the hook still runs."""


class PersonHook:
    """One of a person's programs, by its name; nothing waits for it."""

    def __init__(self, root: Path, name: str, start_process: Any = subprocess.Popen) -> None:
        self.root = root
        self.name = name
        self.start_process = start_process
        self.process: Optional[subprocess.Popen[bytes]] = None

    def start(self, limit_s: int, **more: str) -> None:
        """Starts it, if there is one, with `more` in its environment; one that still runs from before goes on."""
        hook = self.root / FOLDER / self.name
        if not hook.exists() or self.is_running():
            return
        if not os.access(str(hook), os.X_OK):
            return tell(self.root, "/%s does not run: chmod +x /%s" % ((FOLDER + self.name,) * 2))
        try:
            self.process = self.start_process(
                ["sh", "-c", RUN, str(self.root / LOGS / (self.name + ".log")), str(limit_s), str(hook)],
                env=dict(os.environ, **more),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as e:  # no memory, or too many processes: the caller goes on warning
            return tell(self.root, "%s does not run: %s" % (self.name, e))
        tell(self.root, "%s runs, for %d seconds at most" % (self.name, limit_s))

    def is_running(self) -> bool:
        """Whether the hook still runs; tells people once how it ended."""
        if self.process is None:
            return False
        code = self.process.poll()
        if code is None:
            return True
        self.process = None
        what = "was stopped: its time was over" if code in (124, 137) else "ended with exit code %d" % code
        tell(self.root, "%s %s" % (self.name, what))
        return False


def time_to_save_s(left_s: float) -> int:
    """How many seconds a program may take when `left_s` are left until the end."""
    return max(1, int(left_s - min(MARGIN_S, left_s / 4)))
