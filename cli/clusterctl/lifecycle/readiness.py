"""Watches nodes over SSH until each is ready and has the membership, has failed, or is out of time.

One event loop has all of them, each with a connection and one long read; the membership goes over the same connection.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from clusterctl.lifecycle.node_following import WaysIn, follow
from clusterctl.lifecycle.script_delivery import AWAITING
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.event_loop import Task
from clusterctl.ssh.fanout.running_loop import RunningLoop
from clusterctl.status.node_report import FAILED, READY, NodeReport
from clusterctl.text.quantities import duration

SILENT = "no answer"
OTHERS_S = 30.0
"""How long nodes that nobody waits for may take to get the membership; those that answer have it in a second or two."""
SCRIPT_PHASES = ("scripts before mounts", "scripts")
HOOK_PHASES = ("packages", "mount clients", *SCRIPT_PHASES)
"""Phases, as `node/boot.py` calls them, that may take as long as their own limits let them, unlike the rest of a boot:
they depend on what a person wrote."""
FINAL_FAILURES = ("host-key",)
"""Failures that another try cannot mend: a machine with another host key stays another machine."""


@dataclass(frozen=True, kw_only=True)
class NodeWatch:
    """Where one node is now."""

    slot: int
    name: str
    phase: str = SILENT
    report: NodeReport | None = None
    trouble: str | None = None
    """Why it was not reached, at the last try."""
    took_s: float = 0.0
    undelivered: str | None = None
    """Why the membership, or the scripts it waits for, were not taken, at the last try."""
    gone: str | None = None
    """Why it has no machine any more, as AWS says."""
    is_final: bool = False

    @property
    def runs_hooks(self) -> bool:
        """Whether it reports that it installs packages or runs scripts, and answered at the last try."""
        return self.phase in HOOK_PHASES and self.trouble is None and not self.is_final

    @property
    def is_ready(self) -> bool:
        """Whether the node itself reported that it is ready, and has the membership."""
        return self.phase == READY and self.is_final and self.undelivered is None and self.gone is None


class Watches(Protocol):
    """The watches of a cluster's nodes, as a change that waits for them uses them; `ReadyWatch` does it by SSH."""

    def start(self, slot: int, name: str) -> None:
        """Begins to watch a slot; nothing happens when it is watched already."""

    def settle(self, membership: bytes) -> None:
        """Takes in the membership: nodes that are ready get it now, others as soon as they are."""

    def now(self) -> tuple[NodeWatch, ...]:
        """All watches, by slot."""

    def wait(
        self, patience: Patience, *, on_tick: Callable[[], None], slots: frozenset[int] | None = None
    ) -> tuple[NodeWatch, ...]:
        """The watches when all are final or the patience is over; `slots`: those waited for; None: all."""

    def waiting(self, slots: frozenset[int] | None = None) -> list[str]:
        """A line for each node that is waited for."""

    def lost(self, slot: int, why: str) -> None:
        """Notes that the slot has no machine any more."""

    def note(self, after: NodeWatch) -> None:
        """Takes in what was seen of a node."""

    def stop(self) -> None:
        """Ends all reading."""


class ReadyWatch:
    """Watches of many nodes; `changed` is called from the loop's thread with each new phase."""

    def __init__(
        self,
        inventory_file: Path,
        *,
        changed: Callable[[NodeWatch], None],
        scripts: bytes | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`scripts`: what is sent to a node that waits for scripts (`script_texts`)."""
        self._changed = changed
        self.scripts = scripts
        self._monotonic = monotonic
        self._sleep = sleep
        self._lock = threading.Lock()
        self._watches: dict[int, NodeWatch] = {}
        self._changed_at: dict[int, float] = {}
        """Slot → when its node was first seen in the phase it is in."""
        self._silent_since: dict[int, float] = {}
        """Slot → since when its node has not answered: the watch's start, or the first failed try after an answer."""
        self._ways = WaysIn(inventory_file)
        self._loop: RunningLoop | None = None
        self._is_stopped = False
        self._unexpected: Exception | None = None
        self.membership: bytes | None = None
        """What ready nodes are to have; None: not known yet."""

    def settle(self, membership: bytes) -> None:
        """Takes in the membership: nodes that are ready get it now, others as soon as they are."""
        self.membership = membership
        if self._loop is not None:
            self._loop.wake()

    def start(self, slot: int, name: str) -> None:
        """Begins to watch a slot; nothing happens when it is watched already."""
        with self._lock:
            if slot in self._watches or self._is_stopped:
                return
            self._watches[slot] = NodeWatch(slot=slot, name=name)
            self._changed_at[slot] = self._silent_since[slot] = self._monotonic()
        if self._loop is None:
            self._loop = RunningLoop("nodes")
        self._loop.begin(self._followed(slot))

    def at(self, slot: int) -> NodeWatch:
        """The watch of a slot that has one."""
        with self._lock:
            return self._watches[slot]

    def seconds(self) -> float:
        """The time in seconds, on the clock that the watches use."""
        return self._monotonic()

    def now(self) -> tuple[NodeWatch, ...]:
        """All watches, by slot."""
        with self._lock:
            return tuple(self._watches[slot] for slot in sorted(self._watches))

    def wait(
        self, patience: Patience, *, on_tick: Callable[[], None], slots: frozenset[int] | None = None
    ) -> tuple[NodeWatch, ...]:
        """The watches when all are final or the patience is over.

        `slots`: those waited for; None: all. The other nodes get at most OTHERS_S, to take the membership.
        """
        began = last = self._monotonic()
        in_hooks_s = 0.0
        while waiting := [watch for watch in self.now() if not watch.is_final]:
            if self._unexpected is not None:
                raise self._unexpected
            now = self._monotonic()
            awaited = [watch for watch in waiting if slots is None or watch.slot in slots]
            if in_hooks_s < patience.hooks_s and any(watch.runs_hooks for watch in awaited):
                in_hooks_s += now - last
            last = now
            quiet_s = [now - self._changed_at[watch.slot] for watch in awaited]
            if awaited and patience.is_over(now - began - in_hooks_s, quiet_s):
                break
            if not awaited and now - began >= OTHERS_S:
                break
            on_tick()
            self._sleep(0.05)
        return self.now()

    def waiting(self, slots: frozenset[int] | None = None) -> list[str]:
        """`train-1: no answer for 1 m 20 s`, for each node of these that is waited for; None: of all."""
        now = self._monotonic()
        with self._lock:
            rows = [self._watches[slot] for slot in sorted(self._watches) if slots is None or slot in slots]
            return [
                waiting_for(watch, now - self._changed_at[watch.slot], now - self._silent_since.get(watch.slot, now))
                for watch in rows
                if not watch.is_final
            ]

    def lost(self, slot: int, why: str) -> None:
        """Notes that the slot has no machine any more, so that nothing is waited for."""
        self.note(replace(self._watches[slot], gone=why, is_final=True))

    def stop(self) -> None:
        """Ends all reading."""
        self._is_stopped = True
        if self._loop is not None:
            self._loop.stop()

    def _followed(self, slot: int) -> Task:
        """The steps that follow one node; `wait` raises an unexpected error of theirs."""
        try:
            yield from follow(_FollowedSlot(self, slot), self._ways)
        except Exception as e:  # noqa: BLE001 handed to the thread that waits
            self._unexpected = e

    def note(self, after: NodeWatch) -> None:
        """Takes in what was seen of a node that is watched."""
        with self._lock:
            before = self._watches[after.slot]
            if before.gone is not None:  # AWS said so while a try was still under way
                return
            self._watches[after.slot] = after
            if after.trouble is None:
                self._silent_since.pop(after.slot, None)
            else:
                self._silent_since.setdefault(after.slot, self._monotonic())
            if after.phase != before.phase:
                self._changed_at[after.slot] = self._monotonic()
        if after.phase != before.phase or (after.is_final and not before.is_final):
            self._changed(after)


class _FollowedSlot:
    """One slot of a watch, as `follow` sees it."""

    def __init__(self, watch: ReadyWatch, slot: int) -> None:
        self.slot = slot
        self._watch = watch
        self._began = watch.seconds()
        self._has_scripts = False
        """Whether the node was given its scripts, and has reported no other phase since."""

    @property
    def is_final(self) -> bool:
        return self._watch.at(self.slot).is_final

    @property
    def scripts(self) -> bytes | None:
        is_waiting = self._watch.at(self.slot).phase == AWAITING and not self._has_scripts
        return self._watch.scripts if is_waiting else None

    @property
    def membership(self) -> bytes | None:
        return self._watch.membership if self._watch.at(self.slot).phase == READY else None

    def reported(self, report: NodeReport) -> None:
        after = replace(
            self._watch.at(self.slot),
            report=report,
            phase=report.phase,
            is_final=report.phase == FAILED,
            trouble=None,
            undelivered=None,
            took_s=self._watch.seconds() - self._began,
        )
        self._has_scripts = self._has_scripts and report.phase == AWAITING
        self._watch.note(after)

    def troubled(self, why: str, *, failure: NodeFailure | None = None) -> None:
        # Before the engine is done, the address may still be the one of the machine before this one.
        is_settled = self._watch.membership is not None
        is_final = failure is not None and failure.kind in FINAL_FAILURES and is_settled
        self._watch.note(replace(self._watch.at(self.slot), trouble=why, is_final=is_final))

    def delivered(self, refusal: str | None) -> None:
        self._has_scripts = refusal is None
        # Before the engine is done, this may still be the machine before this one, which waits for other scripts.
        is_final = refusal is not None and self._watch.membership is not None
        self._watch.note(replace(self._watch.at(self.slot), undelivered=refusal, is_final=is_final))

    def applied(self, refusal: str | None) -> None:
        self._watch.note(replace(self._watch.at(self.slot), undelivered=refusal, is_final=True))


def waiting_for(watch: NodeWatch, in_phase_s: float, silent_s: float) -> str:
    """`train-1: starting for 4 m 10 s`, or `train-1: no answer for 1 m 20 s`. Pure."""
    if watch.report is None or watch.trouble is not None:
        return f"{watch.name}: {SILENT} for {duration(timedelta(seconds=silent_s))}"
    if watch.phase == READY:
        return f"{watch.name}: ready, being told the list of nodes"
    if watch.phase == AWAITING:
        return f"{watch.name}: waiting for its scripts for {duration(timedelta(seconds=in_phase_s))}"
    return f"{watch.name}: {watch.phase} for {duration(timedelta(seconds=in_phase_s))}"


def why_not_ready(watch: NodeWatch, *, now: datetime) -> list[str]:
    """Lines about a node that is not ready: its phase, what it says, the last lines of its log."""
    report = watch.report
    if watch.gone is not None:
        return [f"{watch.name}: its machine is gone ({watch.gone})"]
    if report is not None and report.phase == FAILED:
        lines = [f"{watch.name}: failed in {report.failed_phase or '?'}: {report.message or 'no message'}"]
        return [*lines, *(f"    {line}" for line in report.log)]
    if report is not None and report.phase == READY:
        return [f"{watch.name}: ready, but without the membership: {watch.undelivered or watch.trouble or SILENT}"]
    if report is not None and report.phase == AWAITING and watch.undelivered is not None:
        return [f"{watch.name}: it did not take its scripts: {watch.undelivered}"]
    if report is not None:
        return [f"{watch.name}: still in {watch.phase}{_in_phase_for(report, now)}"]
    return [f"{watch.name}: {SILENT}" + (f" ({watch.trouble})" if watch.trouble else "")]


def _in_phase_for(report: NodeReport, now: datetime) -> str:
    if report.since is None:
        return ""
    return f" for {duration(max(timedelta(0), now - report.since))}"


MOST_TIMES_USUAL = 3.0
"""Waiting ends after this many times the usual time: a node that reboots again and again enters new phases for ever."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """When waiting for nodes is over."""

    usual_s: float
    """A healthy node takes no longer; `--ready-timeout` sets it."""
    phase_s: float = 0.0
    """After that, a node is still waited for if it entered its phase less than this long ago; 0: none is."""
    hooks_s: float = 0.0
    """How long in all the clock may stand still while a node reports that it installs packages or runs scripts."""

    def is_over(self, waited_s: float, quiet_s: Iterable[float]) -> bool:
        """Whether waiting is over. Pure.

        `quiet_s`: for each node that is waited for, how long ago it entered its phase.
        """
        if waited_s < self.usual_s:
            return False
        return waited_s >= MOST_TIMES_USUAL * self.usual_s or not any(quiet < self.phase_s for quiet in quiet_s)
