"""The watch over this machine's end: looks every second how much time is left, and warns.

At the deadline it ends nothing, which is the guard's part, and AWS itself ends a spot machine that it takes back. The
watch ends the machine only before both, when a rule wants that.
"""

import json
import os
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Tuple

from clusterctl_bootstrap.node import register, warning
from clusterctl_bootstrap.node.beat_port import BeatPort
from clusterctl_bootstrap.node.boundary import Boundary
from clusterctl_bootstrap.node.dead_man import DeadMan
from clusterctl_bootstrap.node.ending import AWS, GUARD, WATCH, End, deadline, end_now, uptime_s
from clusterctl_bootstrap.node.facts import FactsError, birth, read_json
from clusterctl_bootstrap.node.files import write_atomically
from clusterctl_bootstrap.node.idle_node import wanted_end
from clusterctl_bootstrap.node.metadata_service import MetadataService
from clusterctl_bootstrap.node.notices import Notices, remembered
from clusterctl_bootstrap.node.outside import Outside
from clusterctl_bootstrap.node.person_hook import PRE_TERMINATE, Hook, PersonHook, time_to_save_s
from clusterctl_bootstrap.node.spot_market import SpotMarket, SpotNotices

POLL_S = 1.0
SAME_END_S = 5
"""Ends that differ by no more are the same: the guard counts whole seconds, anew at each push."""
DRAIN_S = 300
"""The longest time from a rule's verdict to the end; as long as the last warning's time."""
LEAST_S = 10
"""The time before an end at which nobody has to save anything: enough to read why."""
PID = "run/clusterctl/watch.pid"
WARNED = "run/clusterctl/warned"
Rule = Callable[[], str]
"""Returns why this machine has to end before its deadline; empty while it does not have to."""
PORT_RULE, NOTICES, DEADLINE, WARNINGS, HOOKS = "port of beats", "spot notices", "deadline", "warnings", "hooks"
"""The parts of the watch that may fail alone, besides its rules."""


def watch(root: Path, outside: Outside) -> int:
    """Watches over this machine's end; never returns."""
    write_atomically(root / PID, "%d\n" % os.getpid())
    boundary = Boundary(root)
    boundary.run(WARNINGS, lambda: register.open_register(root, outside))
    port = BeatPort(root, outside, outside.monotonic)
    dead_man = DeadMan(root, outside.monotonic)
    market = SpotMarket(MetadataService().page, lambda: uptime_s(root), outside.sleep, remembered(root))
    boundary.run(NOTICES, market.start)
    rules: Dict[str, Rule] = {"dead man": dead_man.look, "idle": lambda: wanted_end(root)}
    own = Watch(root, outside, rules, dead_man.last_words, lambda: market.notices, boundary)
    while True:
        boundary.run(PORT_RULE, port.look)
        boundary.run("the watch", own.look)
        boundary.note()
        outside.sleep(POLL_S)


class Watch:
    """Warns before the next end; what was told is kept in a file, so that a new start tells nothing twice."""

    def __init__(
        self,
        root: Path,
        outside: Outside,
        rules: Dict[str, Rule],
        last_words: Callable[[int], None] = lambda wait_s: None,
        aws_notices: Callable[[], SpotNotices] = SpotNotices,
        boundary: Optional[Boundary] = None,
    ) -> None:
        self.root = root
        self.outside = outside
        self.rules = rules
        self.last_words = last_words
        self.boundary = boundary or Boundary(root)
        self.hook: Hook = PersonHook(root, PRE_TERMINATE)
        self.notices = Notices(root, aws_notices)
        known = birth(root)
        self.name = "%s-%d" % (known["cluster"], known["slot"])
        self.early: Optional[Tuple[float, str]] = None
        self.warned = remembered_warnings(root)

    def look(self) -> None:
        """Does what is due now; an error in one part stops no other part."""
        run = self.boundary.run
        run(NOTICES, lambda: self.notices.look(self.name))
        end = self._next_end()
        if end is None:
            return
        before = json.dumps(self.warned)
        due = warning.stage(end.left_s)
        run(WARNINGS, lambda: self._warn(end, due))
        run(WARNINGS, lambda: self._signal(due))
        is_saving = run(HOOKS, lambda: self._runs_hook(end, due), False) or bool(self.warned["signalled"])
        if json.dumps(self.warned) != before:
            run(WARNINGS, lambda: write_atomically(self.root / WARNED, json.dumps(self.warned)))
        if end.by == WATCH and (end.left_s <= 0 or (end.left_s <= DRAIN_S - LEAST_S and not is_saving)):
            self._tell("%s ends now: %s" % (self.name, end.why))
            run("last words", lambda: self.last_words(DRAIN_S))
            end_now(self.root, self.outside)

    def _warn(self, end: End, due: int) -> None:
        """Tells people of this end, once at each stage."""
        if abs(end.at - self.warned["at"]) > SAME_END_S:
            if self.warned["stage"] and not due:
                self._tell("%s goes on: it ends in %s" % (self.name, warning.in_words(end.left_s)))
            self.warned = self._record(end, due)
        if due > self.warned["stage"]:
            words = (self.name, warning.in_words(end.left_s), end.why)
            self._tell("%s ends in %s (%s): save what is to be kept" % words)
            self.warned.update(stage=due, signalled=self.warned["signalled"] if self.warned["hook"] else [])

    def _signal(self, due: int) -> None:
        """Signals the processes that asked; reads the register in any case, so that nothing gathers there."""
        asking = set(register.asking(self.root))
        if due:
            warning.send(asking.difference(self.warned["signalled"]))
            self.warned["signalled"] = sorted(asking)

    def _runs_hook(self, end: End, due: int) -> bool:
        """Whether a person's program saves; it is started at the last warning."""
        if due == len(warning.STAGES_S) and not self.warned["hook"]:
            self.warned["hook"] = True
            more = {"CLUSTERCTL_ENDS_IN_S": str(int(end.left_s)), "CLUSTERCTL_END_REASON": end.why}
            self.hook.start(time_to_save_s(end.left_s), **more)
        return self.hook.is_running()

    def _next_end(self) -> Optional[End]:
        """The deadline, or what comes before it: the end that a rule wants, or AWS's; None where nothing is known."""
        run = self.boundary.run
        # A rule that cannot say anything is no reason to end.
        whys = [why for why in (run(part, rule, "") for part, rule in self.rules.items()) if why]
        now = uptime_s(self.root)
        ends = [run(DEADLINE, lambda: deadline(self.root)), run(NOTICES, lambda: self.notices.end(now))]
        if not whys:
            self.early = None
        elif self.early is None:
            self.early = (now + DRAIN_S, whys[0])
        if self.early is not None:
            ends.append(End(self.early[0], self.early[0] - now, self.early[1], WATCH))
        return min((end for end in ends if end), key=lambda end: end.left_s, default=None)

    def _record(self, end: End, due: int) -> Dict[str, Any]:
        """The record for another end, for which no warning was given yet.

        Those who save already are not told again when AWS's end takes the place of another end or the other way round.
        """
        started = record(end.at, end.by)
        if AWS in (end.by, self.warned.get("by")) and due == self.warned["stage"] == len(warning.STAGES_S):
            started.update(hook=self.warned["hook"], signalled=self.warned["signalled"])
        return started

    def _tell(self, text: str) -> None:
        warning.tell(self.root, text)


def remembered_warnings(root: Path) -> Dict[str, Any]:
    """What the previous watch of this boot had told."""
    empty = record(0)
    try:
        found = read_json(root / WARNED)
    except FactsError:
        return empty
    return found if found.keys() == empty.keys() else empty


def record(at: float, by: str = GUARD) -> Dict[str, Any]:
    """The record of warnings of an end at `at`: none was given yet."""
    return {"at": at, "by": by, "stage": 0, "hook": False, "signalled": []}
