"""/etc/clusterctl/hooks/pre-terminate: a person's program that saves what is not saved yet. It delays nothing."""

import os
import subprocess
from pathlib import Path
from typing import Optional

from clusterctl_bootstrap.node.hooks import RUN
from clusterctl_bootstrap.node.warning import tell

HOOK = "etc/clusterctl/hooks/pre-terminate"
LOG = "var/log/clusterctl/pre-terminate.log"
MARGIN_S = 10
"""Before the end: time to see that it was not done."""


class PreTerminate:
    """The hook; runs once for an end, beside all else."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.process: Optional[subprocess.Popen[bytes]] = None

    def start(self, left_s: float, reason: str) -> None:
        """Starts it, if there is one, with the time that it may take; one that still runs for an end before goes on."""
        hook = self.root / HOOK
        if not hook.exists() or self.is_running():
            return
        if not os.access(str(hook), os.X_OK):
            return tell(self.root, "/%s does not run: chmod +x /%s" % (HOOK, HOOK))
        limit_s = max(1, int(left_s - min(MARGIN_S, left_s / 4)))
        more = {"CLUSTERCTL_ENDS_IN_S": str(int(left_s)), "CLUSTERCTL_END_REASON": reason}
        self.process = subprocess.Popen(
            ["sh", "-c", RUN, str(self.root / LOG), str(limit_s), str(hook)],
            env=dict(os.environ, **more),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        tell(self.root, "pre-terminate runs, for %d seconds at most" % limit_s)

    def is_running(self) -> bool:
        """Whether it is not done; says once how it ended."""
        if self.process is None:
            return False
        code = self.process.poll()
        if code is None:
            return True
        self.process = None
        what = "was stopped: its time was over" if code in (124, 137) else "ended with exit code %d" % code
        tell(self.root, "pre-terminate %s" % what)
        return False
