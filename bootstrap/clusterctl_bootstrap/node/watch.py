"""The watch over this machine's end: looks every second how much time is left, and warns.

At the deadline it ends nothing: that is the guard's. An end before it, which a rule wants, is the watch's own.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

from clusterctl_bootstrap.node import warning
from clusterctl_bootstrap.node.dead_man import DeadMan
from clusterctl_bootstrap.node.ending import DEADLINE, End, deadline, end_now, uptime_s
from clusterctl_bootstrap.node.facts import FactsError, birth, read_json
from clusterctl_bootstrap.node.files import write_atomically
from clusterctl_bootstrap.node.idle_node import wanted_end
from clusterctl_bootstrap.node.outside import Outside
from clusterctl_bootstrap.node.pre_terminate import PreTerminate

POLL_S = 1.0
SAME_END_S = 5
"""The guard counts whole seconds, anew at each push."""
DRAIN_S = 300
"""From a rule's verdict to the end at most; as long as the last warning's time."""
LEAST_S = 10
"""Before an end that nobody has to save anything for: time to read why."""
PID = "run/clusterctl/watch.pid"
WARNED = "run/clusterctl/warned"
Rule = Callable[[], str]
"""Why this machine has to end before its deadline; nothing while it has not to."""


def watch(root: Path, outside: Outside) -> int:
    """Never returns."""
    write_atomically(root / PID, "%d\n" % os.getpid())
    warning.open_register(root, outside)
    dead_man = DeadMan(root, outside.monotonic)
    one = Watch(root, outside, [dead_man.look, lambda: wanted_end(root)], dead_man.last_words)
    while True:
        with contextlib.suppress(FactsError, OSError, ValueError):  # a file that is being written, a full disk
            one.look()
        outside.sleep(POLL_S)


class Watch:
    """What has been told of the present end; kept in a file, so that a new start of the watch tells nothing twice."""

    def __init__(
        self, root: Path, outside: Outside, rules: List[Rule], last_words: Callable[[int], None] = lambda wait_s: None
    ) -> None:
        self.root = root
        self.outside = outside
        self.rules = rules
        self.last_words = last_words
        self.hook = PreTerminate(root)
        known = birth(root)
        self.name = "%s-%d" % (known["cluster"], known["slot"])
        self.early: Optional[Tuple[float, str]] = None
        try:
            self.told = read_json(root / WARNED)
        except FactsError:
            self.told = untold(0)

    def look(self) -> None:
        """Does what is due now."""
        end = self._next_end()
        before = json.dumps(self.told)
        due = warning.stage(end.left_s)
        if abs(end.at - self.told["at"]) > SAME_END_S:
            if self.told["stage"] and not due:
                self._tell("%s goes on: it ends in %s" % (self.name, warning.in_words(end.left_s)))
            self.told = untold(end.at)
        if due > self.told["stage"]:
            words = (self.name, warning.in_words(end.left_s), end.why)
            self._tell("%s ends in %s (%s): save what is to be kept" % words)
            self.told.update(stage=due, signalled=[])
        asking = set(warning.asking(self.root))
        if due:
            warning.send(asking.difference(self.told["signalled"]))
            self.told["signalled"] = sorted(asking)
        if due == len(warning.STAGES_S) and not self.told["hook"]:
            self.told["hook"] = True
            self.hook.start(end.left_s, end.why)
        is_saving = self.hook.is_running() or bool(self.told["signalled"])
        if json.dumps(self.told) != before:
            with contextlib.suppress(OSError):
                write_atomically(self.root / WARNED, json.dumps(self.told))
        if end.why != DEADLINE and (end.left_s <= 0 or (end.left_s <= DRAIN_S - LEAST_S and not is_saving)):
            self._tell("%s ends now: %s" % (self.name, end.why))
            self.last_words(DRAIN_S)
            end_now(self.root, self.outside)

    def _next_end(self) -> End:
        """The deadline, or what a rule wants before it."""
        whys = [why for why in map(verdict, self.rules) if why]
        last = deadline(self.root)
        if not whys:
            self.early = None
            return last
        now = uptime_s(self.root)
        if self.early is None:
            self.early = (now + DRAIN_S, whys[0])
        at, why = self.early
        return End(at, at - now, why) if at - now < last.left_s else last

    def _tell(self, text: str) -> None:
        warning.tell(self.root, text)


def verdict(rule: Rule) -> str:
    """What the rule says; nothing when it cannot say anything, since that is no reason to end."""
    try:
        return rule()
    except (FactsError, OSError, ValueError, LookupError):
        return ""


def untold(at: float) -> Dict[str, Any]:
    """Nothing was said yet of the end at `at`."""
    return {"at": at, "stage": 0, "hook": False, "signalled": []}
