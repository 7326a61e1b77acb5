"""What keeps an `extend` from beginning: each of these raises before anything is changed."""

from __future__ import annotations

from datetime import datetime, timedelta

from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.errors import CapExceeded, ClusterctlError
from clusterctl_infra.outputs import Inventory
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.engine.run_file import RunRecord
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.deadline_request import (
    AWS_AHEAD,
    AWS_LEFT,
    REHEARSAL_AHEAD,
    REHEARSAL_LEFT,
    DeadlineRequest,
    refuse_move,
)
from clusterctl.lifecycle.intent import Intent
from clusterctl.lifecycle.preview import made_anew, made_anew_lines
from clusterctl.status.unfinished import unfinished_of
from clusterctl.text.next_commands import edit, go_on_with
from clusterctl.text.quantities import clock, duration


def half_done_before(previous: RunRecord | None, inventory: Inventory) -> str | None:
    """What `status` says of a half-done run before this one; None for an `extend`, which this one finishes."""
    run = unfinished_of(previous)
    return None if run is None or run.verb == "extend" else go_on_with(run.verb, inventory)


def refuse_machines_anew(state: StackState, config: ClusterConfig, cluster_plan: ClusterPlan, *, source: str) -> None:
    """Raises ClusterctlError when the file was changed so that machines would be made anew: `extend` ends none."""
    anew = made_anew(state, config, cluster_plan)
    if anew:
        raise ClusterctlError(
            f"{source} was changed so that machines would be replaced, which extend does not do: "
            f"{'; '.join(made_anew_lines(anew))}. Undo that change, extend, and then make it again",
            hint=edit(source),
        )


def refuse_times(
    change: Change,
    request: DeadlineRequest,
    intent: Intent,
    cluster_plan: ClusterPlan,
    *,
    before: datetime,
    shown: str,
    now: datetime,
) -> None:
    """Raises UsageError or CapExceeded for an end too near, too late or beyond the budget, or for too little time left.

    Asked again after the person has agreed.
    """
    ahead = REHEARSAL_AHEAD if change.is_rehearsal else AWS_AHEAD
    refuse_move(request, intent, cluster_plan, cluster=change.cluster, ahead=ahead, now=now)
    if cluster_plan.deadline.at > before:
        refuse_too_late(before, cluster=change.cluster, is_rehearsal=change.is_rehearsal, shown=shown, now=now)


def refuse_too_late(before: datetime, *, cluster: str, is_rehearsal: bool, shown: str, now: datetime) -> None:
    """Raises CapExceeded where the schedule could fire before it is moved: the nodes get the new deadline first."""
    left, needed = before - now, REHEARSAL_LEFT if is_rehearsal else AWS_LEFT
    if left <= timedelta(0):
        raise CapExceeded(
            f"{cluster} ended at {clock(before, now)}; down and then up begin another run",
            hint=f"clusterctl down {shown} && clusterctl up {shown}",
        )
    if left < needed:
        raise CapExceeded(
            f"{cluster} ends at {clock(before, now)}, in {duration(left)}: with less than {duration(needed)} left a "
            "deadline is not moved later, because AWS could end the nodes while they are being told. Save your data; "
            "down and then up begin another run",
            hint=f"clusterctl down {shown} && clusterctl up {shown}",
        )
