"""Places that AWS has reserved and does not count as free yet: machines that want one are refused for a while.

Seen seconds after a reservation was made (scylladb/scylla-cluster-tests, issue 8839; 2026-11-22); EC2 promises that
what was changed is seen, but not when ("Eventual consistency in the Amazon EC2 API").
"""

from __future__ import annotations

from collections.abc import Callable

from clusterctl_infra.errors import ClusterctlError

from clusterctl.changes.change import Change
from clusterctl.engine.run import RunResult

CODE = "ReservationCapacityExceeded"
PAUSES_S = (15.0, 30.0, 60.0)
"""Before another run each. The provider tries no machine again for it, and an `up` that failed would be undone."""


def run_until_places_are_free(
    run: Callable[[], RunResult], change: Change, *, sleep: Callable[[float], None]
) -> RunResult:
    """What a run of the engine gave; one that only found no free place begins again, for what it has not made."""
    result = run()
    for pause_s in () if change.is_rehearsal else PAUSES_S:
        if not _is_refused_for_places(result):
            break
        change.output.note(f" AWS does not count all reserved places as free yet ({CODE}): again in {pause_s:.0f} s")
        try:
            sleep(pause_s)
        except KeyboardInterrupt:  # there is no engine to take it
            return RunResult(
                succeeded=False, interrupted=True, changes=result.changes, refusals=(), log=result.log, said=""
            )
        try:
            result = run()
        except (ClusterctlError, OSError):  # it did not start: what the one before made is undone
            break
    return result


def _is_refused_for_places(result: RunResult) -> bool:
    codes = {refusal.code for refusal in result.refusals if refusal.code is not None}
    return not result.interrupted and result.killed_by is None and codes == {CODE}
