"""What a job's nodes do next, decided in one place from what each of them says. Pure: the clock is a parameter.

Members say how they are (`phase`: ready, running, ended), the coordinator answers with what all are to do. Both always
say all of it, so a connection that is lost and made again loses nothing.
"""

from __future__ import annotations

from typing import Any, Mapping

from clusterctl.on_node.job import judge
from clusterctl.on_node.job.warned import is_same

READY, RUNNING, ENDED = "ready", "running", "ended"
MET_WITHIN_S = 60.0
"""Every node's supervisor has to come within this time, or the job does not start."""
LOST_AFTER_S = 10.0
"""A member whose connection is gone for this long is lost; it had time to make another one."""
AHEAD_S = 0.3
"""How far ahead the instant of the start is: every member has heard of it by then."""
SETTLE_S = 0.5
"""How long a failure that looks like a victim's waits, since its culprit may be reported after it."""
STOPPED_WITHIN_S = 30.0
"""How long ranks have to end beyond the grace: a node that has not ended its ranks by then is lost."""
DEADLINE_AHEAD_S = 20.0
"""The job is stopped this long, and its grace in addition, before the nodes end."""


def directive_for(slot: int, directive: Mapping[str, Any]) -> dict[str, Any]:
    """The directive for one member, with the orders for it only."""
    if "orders" not in directive:
        return dict(directive)
    return {**directive, "orders": [order for order in directive["orders"] if int(order["slot"]) == slot]}


class Coordination:
    """Decides what the members do next in one attempt of the job."""

    def __init__(self, spec: Mapping[str, Any], now_s: float) -> None:
        self._spec = spec
        self._began_s = now_s
        self._slots = [int(member["slot"]) for member in spec["members"]]
        self._reports: dict[int, dict[str, Any]] = {}
        self._gone_s: dict[int, float] = {}
        self._lost: set[int] = set()
        self._started_s: float | None = None
        self._failed_s: float | None = None
        self._stopped_s: float | None = None
        self._end = ("", "")
        self._failures: list[dict[str, Any]] = []
        self._warning: dict[str, Any] | None = None
        self.directive: dict[str, Any] = {"do": "wait"}

    def receive(self, slot: int, report: Mapping[str, Any]) -> None:
        """Takes a member's report, which also says that it is there."""
        self._reports[slot] = dict(report)
        self._gone_s.pop(slot, None)

    def gone(self, slot: int, now_s: float) -> None:
        """Takes note that a member's connection has ended."""
        self._gone_s.setdefault(slot, now_s)

    @property
    def is_over(self) -> bool:
        """Whether the end of the attempt is decided."""
        return bool(self.directive["do"] == "finish")

    @property
    def listeners(self) -> set[int]:
        """The slots that still have to hear how the attempt ended."""
        return set(self._reports) - self._lost

    def look(self, now_s: float, wall_s: float, deadline_s: float | None) -> dict[str, Any]:
        """The directive for all members at this moment."""
        if self.is_over:
            return self.directive
        self._lost |= {slot for slot, at_s in self._gone_s.items() if now_s - at_s > LOST_AFTER_S}
        if self._stopped_s is not None:
            self._finish_stopped(now_s)
        elif not self._stop_where_needed(now_s, wall_s, deadline_s):
            self._go_on(now_s, wall_s)
        self._warn()
        return self.directive

    def _warn(self) -> None:
        """Tells all members of the first end that a node warns of: a job does not outlive any of its nodes."""
        warned = [(slot, report["warning"]) for slot, report in self._reports.items() if report.get("warning")]
        slot, found = min(warned, key=lambda row: float(row[1]["ends_s"]), default=(0, None))
        if not is_same(found, self._warning):
            self._warning = None if found is None else {**found, "slot": slot, "name": self._name(slot)}
        if self.directive.get("warning") != self._warning and not self.is_over:
            self.directive = {**self.directive, "warning": self._warning}

    def _stop_where_needed(self, now_s: float, wall_s: float, deadline_s: float | None) -> bool:
        found = self._reason_to_stop(now_s, wall_s, deadline_s)
        if found is not None:
            self._end = found
            self._stopped_s = now_s
            self._failures = self._reported_failures()
            self.directive = {"do": "stop", "state": found[0], "why": found[1]}
        return found is not None

    def _reason_to_stop(self, now_s: float, wall_s: float, deadline_s: float | None) -> tuple[str, str] | None:
        grace_s, timeout_s = float(self._spec["grace_s"]), self._spec.get("timeout_s")
        if deadline_s is not None and wall_s > deadline_s - grace_s - DEADLINE_AHEAD_S:
            return judge.BY_DEADLINE, "the cluster reached its deadline"
        if any(report.get("is_cancelled") for report in self._reports.values()):
            return judge.CANCELLED, judge.PLAIN_CANCEL
        if self._lost:
            return judge.LOST, self._why_lost()
        failures = self._reported_failures()
        if failures:
            self._failed_s = now_s if self._failed_s is None else self._failed_s
            # A node that is away comes back soon or is lost soon, and may be what the others are victims of.
            is_settled = now_s - self._failed_s >= SETTLE_S and not self._gone_s
            if is_settled or not all(judge.is_victim(failure) for failure in failures):
                return judge.FAILED, ""
        if timeout_s is not None and self._started_s is not None and now_s - self._started_s > float(timeout_s):
            return judge.TIMED_OUT, "it ran for the %g s of --timeout" % float(timeout_s)
        missing = [slot for slot in self._slots if slot not in self._reports]
        if missing and now_s - self._began_s > MET_WITHIN_S:
            return judge.FAILED, "%s did not reach the start within %g s" % (self._names(missing), MET_WITHIN_S)
        return None

    def _go_on(self, now_s: float, wall_s: float) -> None:
        phases = [self._reports.get(slot, {}).get("phase") for slot in self._slots]
        if self._started_s is None and all(phase == READY for phase in phases):
            self._started_s = now_s
            self.directive = {"do": "start", "at_s": wall_s + AHEAD_S}
        elif all(phase == ENDED for phase in phases) and not self._reported_failures():
            self._finish(judge.SUCCEEDED, "")
        elif self._started_s is not None:
            self._pass_orders_on()

    def _pass_orders_on(self) -> None:
        """Puts what mpirun wants started on other nodes into their directives."""
        orders = [order for report in self._reports.values() for order in report.get("orders", ())]
        if orders != self.directive.get("orders", []):
            self.directive = {**self.directive, "orders": orders}

    def _finish_stopped(self, now_s: float) -> None:
        waited_s = now_s - (self._stopped_s or now_s)
        late_s = float(self._spec["grace_s"]) + STOPPED_WITHIN_S
        left = [slot for slot in self._slots if self._reports.get(slot, {}).get("phase") not in (None, ENDED)]
        if all(slot in self._lost for slot in left) or waited_s > late_s:
            self._finish(*self._end)

    def _finish(self, state: str, why: str) -> None:
        self.directive = {"do": "finish", "outcome": judge.outcome(state, why, self._failures)}

    def _reported_failures(self) -> list[dict[str, Any]]:
        return [dict(failure) for report in self._reports.values() for failure in report.get("failures", ())]

    def _why_lost(self) -> str:
        warned = [self._reports[slot]["warning"] for slot in sorted(self._lost) if self._reports[slot].get("warning")]
        why = "before it: " + warned[0]["why"] if warned else "its supervisor does not answer any more"
        return "%s was lost: %s" % (self._names(self._lost), why)

    def _names(self, slots: Any) -> str:
        return ", ".join("Node %d (%s)" % (slot, self._name(slot)) for slot in sorted(slots))

    def _name(self, slot: int) -> str:
        return str(next(member["name"] for member in self._spec["members"] if int(member["slot"]) == slot))
