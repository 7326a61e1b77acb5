"""What a node on a spot machine does about AWS's notices: tells people, runs a hook, and marks itself for `status`.

What was told is kept in a file of this boot, so that a new start of the watch tells nothing twice.
"""

import contextlib
import json
from pathlib import Path
from typing import Any, Callable, Dict, Optional

from clusterctl_bootstrap.node import status
from clusterctl_bootstrap.node.ending import AWS, End
from clusterctl_bootstrap.node.facts import FactsError, read_json
from clusterctl_bootstrap.node.files import write_atomically
from clusterctl_bootstrap.node.person_hook import REBALANCE, Hook, PersonHook
from clusterctl_bootstrap.node.spot_market import SpotNotices
from clusterctl_bootstrap.node.warning import tell

FILE = "run/clusterctl/notices.json"
REBALANCE_S = 600
"""The time for the hook of a recommendation, when no end is known yet."""
OVER_S = 120
"""If AWS has not taken the machine this long after the time that it named, the deadline counts again."""
WHY = "AWS takes this spot machine back at %s"


class Notices:
    """Acts on AWS's notices; `aws_notices` gives all of them until now."""

    def __init__(self, root: Path, aws_notices: Callable[[], SpotNotices]) -> None:
        self.root = root
        self.aws_notices = aws_notices
        self.hook: Hook = PersonHook(root, REBALANCE)
        self.done = remembered(root)
        self.is_marked = self.done != SpotNotices()

    def end(self, now_s: float) -> Optional[End]:
        """The end that AWS brings; None where it told of none. `now_s`: the uptime."""
        notices = self.aws_notices()
        if not notices.ends or now_s - notices.ends_s > OVER_S:
            return None
        return End(notices.ends_s, notices.ends_s - now_s, WHY % time_of_day(notices.ends), AWS)

    def look(self, name: str) -> None:
        """Acts on new notices for the node of that name; the watch itself warns before an end."""
        notices = self.aws_notices()
        if notices != self.done:
            if notices.rebalance and not self.done.rebalance:
                words = (name, time_of_day(notices.rebalance))
                tell(self.root, "AWS may take %s back soon (it said so at %s): save what is to be kept" % words)
                more = {"CLUSTERCTL_NOTICE": "rebalance", "CLUSTERCTL_NOTICE_TIME": notices.rebalance}
                self.hook.start(REBALANCE_S, **more)
            self.done = notices
            with contextlib.suppress(OSError):
                write_atomically(self.root / FILE, json.dumps(notices._asdict()))
        self.hook.is_running()
        self._mark(mark(notices))

    def _mark(self, wanted: Optional[Dict[str, Any]]) -> None:
        """Notes the mark where it is missing: a boot that begins forgets all notes. Raises FactsError and OSError."""
        if wanted is None and not self.is_marked:
            return
        if json.loads(status.line(self.root)).get("notice") != wanted:
            status.note(self.root, notice=wanted)
        self.is_marked = wanted is not None


def mark(notices: SpotNotices) -> Optional[Dict[str, Any]]:
    """What `status` shows of the notices: the interruption, else the recommendation; None without either."""
    if notices.ends:
        return {"kind": "interruption", "time": notices.ends, "at": notices.at}
    return {"kind": "rebalance", "time": notices.rebalance, "at": notices.at} if notices.rebalance else None


def remembered(root: Path) -> SpotNotices:
    """What the previous watch of this boot had heard."""
    try:
        notices = SpotNotices(**read_json(root / FILE))
    except (FactsError, TypeError):
        return SpotNotices()
    is_whole = all(type(value) in kinds for value, kinds in zip(notices, ((str,), (int, float), (str,), (str,))))
    return notices if is_whole else SpotNotices()


def time_of_day(instant: str) -> str:
    """`10:32:05 UTC` of `2026-01-31T10:32:05Z`."""
    return instant[11:19] + " UTC"
