"""CloudWatch's alarms on failed executions. Without data an alarm keeps its state, which is in its record."""

from __future__ import annotations

from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.region import Region
from clusterctl_rehearsal.region.types.deadline import ALARM, FAILED_METRIC, TIMED_OUT_METRIC
from clusterctl_rehearsal.states.ended_executions import ExecutionRow

_ON_SINCE = "on_since"
_METRICS = {"FAILED": FAILED_METRIC, "TIMED_OUT": TIMED_OUT_METRIC}


def turn_on(region: Region, ended: ExecutionRow) -> None:
    """Turns on the alarms that watch for executions ending as this one did. Raises OSError."""
    with region.lock:
        for alarm in list(region.store.live(ALARM)):
            inputs = alarm.inputs
            watched = ((inputs.get("dimensions") or {}).get("StateMachineArn"), inputs["metricName"])
            if watched == (ended.machine_arn, _METRICS.get(ended.status)) and on_since(alarm) is None:
                region.store.put(alarm.changed(**{_ON_SINCE: ended.ended_at}))


def on_since(alarm: Record) -> float | None:
    """Since when the alarm is in state ALARM, in seconds since 1970; None: it is not."""
    return alarm.facts.get(_ON_SINCE)
