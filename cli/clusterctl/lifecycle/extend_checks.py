"""What keeps an `extend` from beginning: each of these raises before anything is changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from clusterctl_infra.errors import CapExceeded, ClusterctlError, EngineError
from clusterctl_infra.names import MEMBERSHIP_TYPE
from clusterctl_infra.outputs import Inventory
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cloud.clock import refuse_wrong_clock
from clusterctl.engine.run_file import RunRecord
from clusterctl.engine.state import StackState, StateResource
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.cluster_name import refuse_other_name
from clusterctl.lifecycle.data import refuse_harm
from clusterctl.lifecycle.deadline_request import (
    AWS_AHEAD,
    AWS_LEFT,
    REHEARSAL_AHEAD,
    REHEARSAL_LEFT,
    DeadlineRequest,
    refuse_move,
)
from clusterctl.lifecycle.ending_stage import refuse_ending
from clusterctl.lifecycle.fixed_at_birth import refuse_other_launch, refuse_other_network, refuse_other_region
from clusterctl.lifecycle.intent import Intent, refuse
from clusterctl.lifecycle.preview import made_anew, made_anew_lines
from clusterctl.status.unfinished import unfinished_of
from clusterctl.text.next_commands import edit, go_on_with
from clusterctl.text.quantities import clock, count, duration


def refuse_state(state: StackState, *, cluster: str, shown: str, now: datetime) -> None:
    """Raises ClusterctlError when there is no cluster whose deadline could be moved."""
    membership = state.find(MEMBERSHIP_TYPE)
    if membership is None or not state.instances:
        raise ClusterctlError(f"{cluster} has no nodes, so it has no deadline to move", hint=f"clusterctl up {shown}")
    deadline = datetime.fromisoformat(str(membership.outputs["deadline"]))
    if deadline <= now:
        raise CapExceeded(
            f"{cluster} ended at {clock(deadline, now)}; another run begins after a down",
            hint=f"clusterctl down {shown} && clusterctl up {shown}",
        )
    slots, members = [one.slot for one in state.instances], len(membership.outputs["members"])
    if slots != list(range(members)):
        raise EngineError(
            f"{cluster}: its last change left {len(slots)} of {count(members, 'node')}; it has to be whole first",
            hint=f"clusterctl up {shown}",
        )


def half_done_before(previous: RunRecord | None, inventory: Inventory) -> str | None:
    """What `status` says of the run before this one, if its work is half done; one of `extend` is finished by this."""
    run = unfinished_of(previous)
    return None if run is None or run.verb == "extend" else go_on_with(run.verb, inventory)


def refuse_half_gone(lost: Sequence[StateResource], *, cluster: str, shown: str) -> None:
    """Raises EngineError when nodes have lost more than their machines: there is nothing to tell a deadline."""
    if lost:
        kinds = sorted({one.type.rpartition(":")[2] for one in lost})
        raise EngineError(
            f"{cluster} is half gone, as after a down that was cut off: its state names {count(len(lost), 'thing')} of "
            f"its nodes ({', '.join(kinds)}) that AWS has no more. No deadline was moved; clusterctl down {shown} ends "
            "the rest, and an up makes it whole",
            hint=f"clusterctl up {shown}",
        )


def refuse_extension(
    change: Change,
    state: StackState,
    wish: DeadlineRequest,
    intent: Intent,
    cluster_plan: ClusterPlan,
    *,
    before: datetime,
    shown: str,
    now: datetime,
) -> None:
    """Raises the error that tells why the deadline cannot be moved there, or not now; `before`: the one that holds."""
    refuse_times(change, wish, intent, cluster_plan, before=before, shown=shown, now=now)
    source = change.stack.source
    refuse_other_name(change, state, intent.config.name)
    refuse_other_region(state, intent.config.region, source=source)
    refuse_other_network(state, intent.config, source=source, shown=shown)
    refuse_other_launch(state, cluster_plan, source=source, shown=shown)
    refuse_harm(state, intent.config, intent.catalog, source=source)
    refuse(
        intent,
        cluster_plan,
        stack=change.stack,
        config_file=change.engine.environment.config_file,
        shown=shown,
        now=now,
    )
    refuse_wrong_clock(change.clients, undone="the deadline was not moved")
    refuse_ending(change, state, hint=f"clusterctl status --cluster {change.cluster}")
    anew = made_anew(state, intent.config, cluster_plan)
    if anew:
        raise ClusterctlError(
            f"{source} was changed so that machines would be made anew, and extend ends none: "
            f"{'; '.join(made_anew_lines(anew))}. Put it back, extend, and change it then",
            hint=edit(source),
        )


def refuse_times(
    change: Change,
    wish: DeadlineRequest,
    intent: Intent,
    cluster_plan: ClusterPlan,
    *,
    before: datetime,
    shown: str,
    now: datetime,
) -> None:
    """What time alone decides, so asked again after the price was agreed to. Raises UsageError, CapExceeded."""
    ahead = REHEARSAL_AHEAD if change.is_rehearsal else AWS_AHEAD
    refuse_move(wish, intent, cluster_plan, cluster=change.cluster, ahead=ahead, now=now)
    if cluster_plan.deadline.at > before:
        refuse_too_late(before, cluster=change.cluster, is_rehearsal=change.is_rehearsal, shown=shown, now=now)


def refuse_too_late(before: datetime, *, cluster: str, is_rehearsal: bool, shown: str, now: datetime) -> None:
    """Raises CapExceeded where the schedule could fire before it is moved, which comes after the nodes are told."""
    left, needed = before - now, REHEARSAL_LEFT if is_rehearsal else AWS_LEFT
    if left <= timedelta(0):
        raise CapExceeded(
            f"{cluster} ended at {clock(before, now)}; another run begins after a down",
            hint=f"clusterctl down {shown} && clusterctl up {shown}",
        )
    if left < needed:
        raise CapExceeded(
            f"{cluster} ends at {clock(before, now)}, in {duration(left)}: with less than {duration(needed)} left a "
            "deadline is not moved later, for AWS could end the nodes while they are being told. Save what is to be "
            "kept; another run begins after a down",
            hint=f"clusterctl down {shown} && clusterctl up {shown}",
        )
