"""What a person sees while a change runs: lines that stay for what is finished, and one live line on a terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from clusterctl_infra.names import MACHINES_NOTE

from clusterctl.engine.events import Event, Message
from clusterctl.engine.progress import GROUPS, Group, Progress, clock_text, group_line, live_line
from clusterctl.lifecycle.readiness import NodeWatch
from clusterctl.output import Output

LIVE_S = 0.1
FEW = 3


class Display:
    """Feeds a progress model and prints from it; nodes may report from other threads."""

    def __init__(self, output: Output, *, is_ending: bool = False) -> None:
        """`is_ending`: things end in the reverse order, so no line is final before the end."""
        self._is_ending = is_ending
        self.progress = Progress()
        self._output = output
        self._began_at = time.monotonic()
        self._shown: set[Group] = set()
        self._shown_remarks: set[str] = set()
        self._last_live = 0.0
        self._phases: dict[str, str] = {}
        self._lock = threading.Lock()
        self._waiting_shown_at: float | None = None

    def event(self, event: Event) -> None:
        """Takes one event of the engine in, and shows what it changes."""
        now = time.monotonic()
        self.progress.feed(event, at=now)
        if isinstance(event, Message) and (line := remark(event)) is not None and line not in self._shown_remarks:
            self._shown_remarks.add(line)
            self._output.note(line)
        for group in () if self._is_ending else self.progress.finished_groups():
            self._show(group, now)
        self.live()

    def end(self) -> None:
        """Shows the lines of the remaining groups."""
        now = time.monotonic()
        for group in GROUPS:
            if self.progress.groups[group].changed:
                self._show(group, now)

    def node(self, watch: NodeWatch) -> None:
        """Takes in a node's phase; shows a line once the node is ready or has failed."""
        with self._lock:
            known = self._phases.get(watch.name)
            phase = watch.phase if watch.trouble is None or watch.report is not None else "no answer"
            if known == phase:
                return
            self._phases[watch.name] = phase
        if phase in ("ready", "failed"):
            self._output.note(f" {watch.name:<11} {phase:<7}   {clock_text(watch.took_s)}")

    def waiting(self, nodes: Sequence[str], *, every_s: float) -> None:
        """Shows which nodes are waited for and why: in the live line, or, if there is none, in a line now and then."""
        now = time.monotonic()
        self.live(nodes)
        if self._waiting_shown_at is None or not nodes:
            self._waiting_shown_at = now
        elif now - self._waiting_shown_at >= every_s:
            self._waiting_shown_at = now
            if not self._output.has_live_line:
                self._output.note(f" waiting for {shortened(nodes, most=FEW)}")

    def live(self, nodes: Sequence[str] | None = None) -> None:
        """Renews the live line, at most ten times a second; `nodes`: a text for each node that is waited for."""
        now = time.monotonic()
        if now - self._last_live < LIVE_S:
            return
        self._last_live = now
        with self._lock:
            waiting = [f"{name}: {phase}" for name, phase in self._phases.items() if phase not in ("ready", "failed")]
        if nodes:
            waiting = [f"waiting for {shortened(nodes, most=FEW)}"]
        line = live_line(self.progress, now=now, began_at=self._began_at)
        self._output.live(" " + " · ".join([line, *waiting[:3]]))

    def _show(self, group: Group, now: float) -> None:
        if group not in self._shown:
            self._shown.add(group)
            self._output.note(group_line(group, self.progress.groups[group], now=now, is_ending=self._is_ending))


def shortened(nodes: Sequence[str], *, most: int) -> str:
    """`train-1: no answer for 20 s, train-2: scripts for 4 m 10 s and 6 more`."""
    more = f" and {len(nodes) - most} more" if len(nodes) > most else ""
    return ", ".join(nodes[:most]) + more


def remark(message: Message) -> str | None:
    """The line that stays for a message: a warning, or which machines a rehearsal boots and why those; else None."""
    if message.severity == "warning":
        return f"  warning  {message.text}"
    if message.text.startswith(MACHINES_NOTE):
        return f" {'machines':<11} {message.text.removeprefix(MACHINES_NOTE)}"
    return None
