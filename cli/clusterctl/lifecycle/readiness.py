"""Watches nodes over SSH until each is ready and has the membership, failed, or out of time.

One thread, one connection and one long read per node; the membership goes over the same connection.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from clusterctl_infra.outputs import Inventory, InventoryNode, InventoryUnreadable, read_inventory
from clusterctl_infra.strict_json import NotAsExpected

from clusterctl.lifecycle.membership import apply_membership
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.single.transport import NodeConnection
from clusterctl.ssh.way_in import uses_session_manager
from clusterctl.status.node_report import FAILED, READY, NodeReport, parse_report
from clusterctl.text.quantities import duration

FOLLOW = "clusterctl-node status --follow"
FIRST_RETRY_S = 0.2
LONGEST_RETRY_S = 1.0
RETRY_GROWTH = 1.3
"""Each try costs a process here and one there, while machines want the processor to boot."""
REHEARSED_WAIT_S = 5.0
"""So long the way to a rehearsed node waits for its sshd, in one process."""
LONGEST_RETRY_BY_SESSION_MANAGER_S = 10.0
"""There each try starts two programs here and a session in the account, which AWS counts (StartSession quota)."""
SILENT = "no answer"
OTHERS_S = 30.0
"""Nodes that nobody waits for, and that answer, have the membership within a second or two."""
SCRIPT_PHASES = ("scripts before mounts", "scripts")
HOOK_PHASES = ("packages", *SCRIPT_PHASES)
"""As `node/boot.py` calls them: what a person wrote may take as long as it is let, and boot does not."""
FINAL_FAILURES = ("host-key",)
"""A machine with another key stays another machine."""


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
    """Why the membership was not taken, at the last try."""
    gone: str | None = None
    """Why it has no machine any more, by AWS."""
    is_final: bool = False

    @property
    def runs_hooks(self) -> bool:
        """It says that it installs packages, or runs scripts, and answered at the last try."""
        return self.phase in HOOK_PHASES and self.trouble is None and not self.is_final

    @property
    def is_ready(self) -> bool:
        """It said so itself, and has the membership."""
        return self.phase == READY and self.is_final and self.undelivered is None and self.gone is None


class ReadyWatch:
    """Watches of many nodes; `changed` is called from their threads with each new phase."""

    def __init__(
        self,
        inventory_file: Path,
        *,
        changed: Callable[[NodeWatch], None],
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._inventory_file = inventory_file
        self._changed = changed
        self._monotonic = monotonic
        self._sleep = sleep
        self._lock = threading.Lock()
        self._watches: dict[int, NodeWatch] = {}
        self._connections: dict[int, NodeConnection] = {}
        self._changed_at: dict[int, float] = {}
        """Slot → when its node was first seen in the phase it is in."""
        self._silent_since: dict[int, float] = {}
        """Slot → when the last try first failed after its node had answered, or began to be watched."""
        self._stopped = threading.Event()
        self._settled = threading.Event()
        self._membership: bytes | None = None

    def settle(self, membership: bytes) -> None:
        """The membership is known: nodes that are ready get it, others when they are."""
        self._membership = membership
        self._settled.set()

    def start(self, slot: int, name: str) -> None:
        """Begins to watch a slot; nothing happens when it is watched already."""
        with self._lock:
            if slot in self._watches or self._stopped.is_set():
                return
            self._watches[slot] = NodeWatch(slot=slot, name=name)
            self._changed_at[slot] = self._silent_since[slot] = self._monotonic()
        threading.Thread(target=self._watch, args=(slot,), daemon=True, name=f"watch {name}").start()

    def now(self) -> tuple[NodeWatch, ...]:
        """All watches, by slot."""
        with self._lock:
            return tuple(self._watches[slot] for slot in sorted(self._watches))

    def wait(
        self, patience: Patience, *, on_tick: Callable[[], None], slots: frozenset[int] | None = None
    ) -> tuple[NodeWatch, ...]:
        """The watches when all are final or the patience is over.

        `slots`: who is waited for; None: all. Others are given a moment alone, for what they are to be told.
        """
        began = last = self._monotonic()
        in_hooks_s = 0.0
        while waiting := [watch for watch in self.now() if not watch.is_final]:
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
        """The slot has no machine any more: nothing is to be waited for."""
        self.note(replace(self._watches[slot], gone=why, is_final=True))

    def stop(self) -> None:
        """Ends all reading."""
        self._stopped.set()
        self._settled.set()
        with self._lock:
            connections = list(self._connections.values())
        for connection in connections:
            connection.close()

    def _watch(self, slot: int) -> None:
        began = self._monotonic()
        pause_s, longest_s = FIRST_RETRY_S, LONGEST_RETRY_S
        while not self._stopped.is_set() and not self._watches[slot].is_final:
            with contextlib.suppress(OSError, InventoryUnreadable):
                inventory = read_inventory(self._inventory_file)
                node = next((row for row in inventory.nodes if row.slot == slot), None)
                if node is not None:
                    longest_s = longest_retry_s(inventory)
                    self._follow(inventory, node, began)
            self._stopped.wait(pause_s)
            pause_s = min(pause_s * RETRY_GROWTH, longest_s)

    def _follow(self, inventory: Inventory, node: InventoryNode, began: float) -> None:
        try:
            way_in, deadlines = way_that_waits(inventory)
            with NodeConnection.open(way_in, node, deadlines) as connection:
                with self._lock:
                    self._connections[node.slot] = connection
                for line in connection.lines(FOLLOW):
                    report = parse_report(line)
                    if report is not None:
                        self._reported(node.slot, report, took_s=self._monotonic() - began)
                    if self._stopped.is_set() or (report is not None and report.phase == FAILED):
                        return
                    if report is not None and report.phase == READY:
                        self._deliver(node.slot, connection)
                        return
        except NotAsExpected as e:
            told = f"its agent's status cannot be read: {e}"
            self.note(replace(self._watches[node.slot], trouble=told))
        except NodeFailure as failure:
            # Before the engine is done, the address may still be the one of the machine before this one.
            is_final = failure.kind in FINAL_FAILURES and self._settled.is_set()
            self.note(replace(self._watches[node.slot], trouble=failure.told_under(node.name), is_final=is_final))
        finally:
            with self._lock:
                self._connections.pop(node.slot, None)

    def _deliver(self, slot: int, connection: NodeConnection) -> None:
        self._settled.wait()
        if self._membership is None:
            return
        refusal = apply_membership(connection, self._membership)
        self.note(replace(self._watches[slot], undelivered=refusal, is_final=True))

    def _reported(self, slot: int, report: NodeReport, *, took_s: float) -> None:
        self.note(
            replace(
                self._watches[slot],
                report=report,
                phase=report.phase,
                is_final=report.phase == FAILED,
                trouble=None,
                took_s=took_s,
            )
        )

    def note(self, after: NodeWatch) -> None:
        """Takes in what was seen of a node that is watched."""
        with self._lock:
            before = self._watches[after.slot]
            if before.gone is not None:  # said by AWS while the node's own thread still tried
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


def way_that_waits(inventory: Inventory) -> tuple[Inventory, Deadlines]:
    """The inventory with a way that waits for nodes that boot (`connect.py`'s last argument), and how long."""
    command, usual = inventory.ssh.proxy_command, Deadlines()
    if not inventory.rehearsal or command is None:
        return inventory, usual
    ssh = replace(inventory.ssh, proxy_command=(*command, f"{REHEARSED_WAIT_S:g}"))
    deadlines = replace(usual, total_s=usual.total_s + REHEARSED_WAIT_S, greeting_s=usual.greeting_s + REHEARSED_WAIT_S)
    return replace(inventory, ssh=ssh), deadlines


def longest_retry_s(inventory: Inventory) -> float:
    """How long to wait between two tries at most, by what a try costs."""
    is_costly = uses_session_manager(inventory.ssh.proxy_command)
    return LONGEST_RETRY_BY_SESSION_MANAGER_S if is_costly else LONGEST_RETRY_S


def waiting_for(watch: NodeWatch, in_phase_s: float, silent_s: float) -> str:
    """`train-1: scripts for 4 m 10 s`, or `train-1: no answer for 1 m 20 s`. Pure."""
    if watch.report is None or watch.trouble is not None:
        return f"{watch.name}: {SILENT} for {duration(timedelta(seconds=silent_s))}"
    if watch.phase == READY:
        return f"{watch.name}: ready, being told the list of nodes"
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
    if report is not None:
        return [f"{watch.name}: still in {watch.phase}{_since(report, now)}"]
    return [f"{watch.name}: {SILENT}" + (f" ({watch.trouble})" if watch.trouble else "")]


def _since(report: NodeReport, now: datetime) -> str:
    if report.since is None:
        return ""
    return f" since {max(0, int((now - report.since).total_seconds()))} s"


MOST_TIMES_USUAL = 3.0
"""A node that boots again and again gets on for ever."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """When waiting for nodes is over."""

    usual_s: float
    """A healthy node takes no longer; `--ready-timeout` says its own."""
    phase_s: float = 0.0
    """After that, one that entered another phase within so long is waited for still; 0: none is."""
    hooks_s: float = 0.0
    """For so long in all the clock stands still while one says that it installs packages, or runs scripts."""

    def is_over(self, waited_s: float, quiet_s: Iterable[float]) -> bool:
        """`quiet_s`: of each node that is waited for, how long ago it entered its phase. Pure."""
        if waited_s < self.usual_s:
            return False
        return waited_s >= MOST_TIMES_USUAL * self.usual_s or not any(quiet < self.phase_s for quiet in quiet_s)
