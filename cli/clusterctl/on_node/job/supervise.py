"""One node's part of a job: starts its ranks when all nodes are there, watches and stops them, says how they ended."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Protocol

from clusterctl.on_node.job import judge
from clusterctl.on_node.job.coordination import ENDED, LOST_AFTER_S, MET_WITHIN_S, READY, RUNNING
from clusterctl.on_node.job.coordinator import Coordinator
from clusterctl.on_node.job.events import note_event
from clusterctl.on_node.job.launch import coordinator_of, first_rank, member_of
from clusterctl.on_node.job.layout import Layout, is_cancelled, mark_cancelled, read_boot_id, read_json, write_state
from clusterctl.on_node.job.member import MemberLink
from clusterctl.on_node.job.member_words import bounded
from clusterctl.on_node.job.node_ranks import NodeRanks
from clusterctl.on_node.job.processes import end_all
from clusterctl.on_node.job.shared_logs import await_copy, start_copy
from clusterctl.on_node.job.this_process import adopt_orphans, end_with_parent
from clusterctl.on_node.job.warned import Warnings

POLL_S = 0.05
MOST_AHEAD_S = 2.0
"""The longest wait for the announced start: if it is later than that, some clock is wrong."""
LAUNCHER_S = 5.0
"""How long a launcher may take to end once its ranks have; torchrun does not always end (it hung for over 200 s)."""
KILLED_WITHIN_S = 10.0
DRAIN_S = 5.0
"""How long the last lines of the ranks are waited for once they have ended."""


def supervise(layout: Layout, job: str, program: Path) -> None:
    """Returns when the job has ended and nothing of it is left on this node."""
    spec = read_json(layout.spec(job))
    slot = int(read_json(layout.node_file)["slot"])
    key = layout.key(job).read_bytes()
    is_coordinator = int(coordinator_of(spec)["slot"]) == slot
    coordinator = Coordinator(layout, spec, key) if is_coordinator else None
    ranks = NodeRanks(layout, spec, member_of(spec, slot), program)
    supervisor = Supervisor(
        layout,
        spec,
        slot,
        link=MemberLink(spec, slot, key),
        ranks=ranks,
        warn=Warnings(layout, job, ranks.say).look,
        kill=lambda: end_all(job, os.getpid(), KILLED_WITHIN_S),
        copy=lambda: await_copy(start_copy(spec, program)),
    )
    end_with_parent()
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda number, frame: mark_cancelled(layout, job))
    coordinating = coordinator.start() if coordinator is not None else None
    supervisor.run()
    if coordinating is not None:
        coordinating.join()
    else:
        time.sleep(4 * POLL_S)  # until the last words are sent


class Link(Protocol):
    """The connection to the job's coordinator."""

    directive: dict[str, Any]

    def start(self) -> None: ...
    def say(self, **words: Any) -> None: ...
    def silent_s(self) -> float: ...
    def wait(self, timeout_s: float) -> None: ...


class RankEnds(Protocol):
    """How the ranks that run here have ended, and their launcher."""

    def has_launcher_ended(self) -> bool: ...
    def ended(self) -> list[dict[str, Any]]: ...
    def launcher_failure(self) -> dict[str, Any]: ...


class Ranks(RankEnds, Protocol):
    """The ranks that run here."""

    is_started: bool

    def start(self) -> None: ...
    def stop(self, grace_s: float) -> None: ...
    def orders(self) -> list[dict[str, Any]]: ...
    def carry_out(self, orders: Iterable[Mapping[str, Any]]) -> None: ...
    def wait_for_launcher(self, timeout_s: float) -> None: ...
    def drain(self, timeout_s: float) -> None: ...


class Supervisor:
    """One node's part of a job: does what the coordinator says, and tells it how the ranks are."""

    def __init__(
        self,
        layout: Layout,
        spec: dict[str, Any],
        slot: int,
        *,
        link: Link,
        ranks: Ranks,
        warn: Callable[[Any], Any],
        kill: Callable[[], list[int]],
        copy: Callable[[], object],
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`warn`: passes on a warning that was heard, and gives this node's own. `kill`: ends what is left of the job
        here, and gives what outlives that. `copy`: keeps the ranks' outputs where they outlive the node.
        """
        self._layout = layout
        self._spec = spec
        self._job = str(spec["job"])
        self._slot = slot
        self._rank = member_of(spec, slot)
        self._link = link
        self._ranks = ranks
        self._warn = warn
        self._kill = kill
        self._copy = copy
        self._pause = pause
        self._is_stopped = False
        self._noted_ranks: set[Any] = set()

    def run(self) -> None:
        """Returns when the job has ended, nothing of it is left on this node, and the coordinator was told so."""
        self._record(judge.STARTING)
        self._link.say(phase=READY, failures=[])
        self._link.start()
        outcome = self._follow()
        left = self._clear()
        self._ranks.drain(DRAIN_S)
        self._copy()
        self._record(outcome["state"], outcome=outcome, left=left)
        self._link.say(knows_end=True)

    def _follow(self) -> dict[str, Any]:
        """Does what the coordinator says until the job has ended; returns how it ended."""
        while True:
            directive = self._link.directive
            is_to_cancel = is_cancelled(self._layout, self._job)
            if directive["do"] == "finish":
                return dict(directive["outcome"])
            if directive["do"] == "start" and not self._ranks.is_started:
                self._start(float(directive["at_s"]))
            elif directive["do"] == "stop":
                self._stop()
            elif self._link.silent_s() > patience_s(is_started=self._ranks.is_started, is_cancelled=is_to_cancel):
                return self._without_coordinator()
            if is_to_cancel:
                self._link.say(is_cancelled=True)
            if self._ranks.is_started and not self._is_stopped:
                self._ranks.carry_out(directive.get("orders", ()))
                self._look()
                self._link.say(warning=self._warn(directive.get("warning")))
            self._link.wait(POLL_S)

    def _start(self, at_s: float) -> None:
        self._pause(min(max(0.0, at_s - time.time()), MOST_AHEAD_S))
        self._ranks.start()
        self._record(judge.RUNNING)
        self._link.say(phase=RUNNING)

    def _look(self) -> None:
        nproc = int(self._spec["members"][self._rank]["nproc"])
        ended = ends_by_now(self._ranks, nproc)
        self._note_ends(ended)
        failures = bounded(self._named(end) for end in ended if end.get("code") != 0)
        is_over = bool(failures) or len(ended) == nproc
        # A node where one rank failed waits to be told to stop: its other ranks may still run.
        phase = ENDED if is_over and not failures else RUNNING
        self._link.say(phase=phase, failures=failures, orders=self._ranks.orders())

    def _note_ends(self, ended: list[dict[str, Any]]) -> None:
        """Writes down each rank's end, once."""
        for end in ended:
            if end["rank"] not in self._noted_ranks:
                self._noted_ranks.add(end["rank"])
                words = {name: end.get(name) for name in ("rank", "code", "signal")}
                note_event(self._layout, self._job, "rank ended", attempt=self._spec["attempt"], **words)

    def _named(self, end: dict[str, Any]) -> dict[str, Any]:
        return {**end, "slot": self._slot, "name": self._spec["members"][self._rank]["name"]}

    def _stop(self) -> None:
        """Ends the ranks: SIGTERM, the grace, SIGKILL; returns when no rank is left."""
        if self._is_stopped:
            return
        self._is_stopped = True
        if self._ranks.is_started:
            self._record(judge.STOPPING)
            self._ranks.stop(float(self._spec["grace_s"]))
            self._clear()
        self._link.say(phase=ENDED)

    def _without_coordinator(self) -> dict[str, Any]:
        """Stops the ranks, as the coordinator is gone; the outcome is `lost`."""
        self._stop()
        coordinator = coordinator_of(self._spec)
        why = "the coordinator, Node %s (%s), does not answer any more" % (coordinator["slot"], coordinator["name"])
        return judge.outcome(judge.LOST, why, ())

    def _clear(self) -> list[int]:
        """Kills whatever of the job is left on this node; returns what outlives that, which nothing should."""
        self._ranks.wait_for_launcher(LAUNCHER_S)
        return self._kill()

    def _record(self, state: str, **more: Any) -> None:
        nproc = int(self._spec["members"][self._rank]["nproc"])
        first = first_rank(self._spec, self._rank)
        cause = (more.get("outcome") or {}).get("cause")
        words = {"why": cause} if cause else {}
        note_event(self._layout, self._job, state, attempt=self._spec["attempt"], **words)
        write_state(
            self._layout,
            self._job,
            {
                "job": self._job,
                "attempt": self._spec["attempt"],
                "slot": self._slot,
                "state": state,
                "since_s": time.time(),
                "boot_id": read_boot_id(self._layout),
                "ranks": [first, first + nproc - 1],
                **more,
            },
        )


def ends_by_now(ranks: RankEnds, nproc: int) -> list[dict[str, Any]]:
    """How ranks have ended, and how their launcher has if it ended before them."""
    # Asked first: a rank's parent writes how the rank ended before the launcher can end.
    has_launcher_ended = ranks.has_launcher_ended()
    ended = ranks.ended()
    if not has_launcher_ended or not all(end.get("code") == 0 or end.get("is_vanished") for end in ended):
        return ended
    vanished = [end for end in ended if end.get("is_vanished")]
    if not vanished:
        return [*ended, ranks.launcher_failure()] if len(ended) < nproc else ended
    # If the launcher was killed, its ranks ended with it: it is what failed. If it exited, it may have ended them.
    launcher = ranks.launcher_failure()
    return [*ended, launcher] if launcher.get("signal") else ended


def patience_s(*, is_started: bool, is_cancelled: bool) -> float:
    """How long the coordinator may be silent before this node goes on without it."""
    return LOST_AFTER_S if is_started or is_cancelled else MET_WITHIN_S
