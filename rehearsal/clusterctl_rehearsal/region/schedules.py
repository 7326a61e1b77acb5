"""Fires schedules when they are due, or late if no region ran then."""

from __future__ import annotations

from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.region import Region
from clusterctl_rehearsal.region.types.deadline import SCHEDULE, STATE_MACHINE, due_at
from clusterctl_rehearsal.states.executions import Executions


class Schedules:
    """Fires schedules. A schedule counts as fired once its execution has ended and that is written down. Until then it
    is fired again: by this region if that failed, by the next one if this one was killed. A failed execution is not
    repeated: as on AWS, alarms report it.
    """

    def __init__(self, *, region: Region, executions: Executions) -> None:
        self._region = region
        self._executions = executions
        self._under_way: set[tuple[str, str]] = set()

    def fire_due(self) -> None:
        """Starts the target of every schedule whose time has come."""
        late_s = self._region.settings().schedule_late_s
        for row in list(self._region.store.live(SCHEDULE)):
            expression = str(row.inputs["scheduleExpression"])
            due = due_at(expression).timestamp() + late_s
            is_done = row.facts.get("fired") == expression or (row.id, expression) in self._under_way
            if row.inputs["state"] == "ENABLED" and not is_done and self._region.clock() >= due:
                self._fire(row, expression)

    def _fire(self, row: Record, expression: str) -> None:
        target = row.inputs["target"]
        machine = self._region.store.get(STATE_MACHINE, target["arn"])
        if machine is None:
            self._fired(row, expression)  # AWS drops it after its retries
            return
        due = (row.id, expression)
        self._under_way.add(due)

        def ended() -> None:
            self._fired(row, expression)
            self._under_way.discard(due)

        def undone() -> None:
            self._under_way.discard(due)

        try:
            self._executions.start(machine, target.get("input") or "{}", ended, undone=undone)
        except BaseException:
            undone()
            raise

    def _fired(self, row: Record, expression: str) -> None:
        with self._region.lock:
            now = self._region.store.get(SCHEDULE, row.id)
            if now is not None:
                self._region.store.put(now.changed(fired=expression))
