"""All or nothing: a new cluster that failed is ended, a grown one goes back to its old size.

What ran before an `up` is never ended by its failure, even if the run that made it was cut off: somebody may use it.
"""

from __future__ import annotations

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.flag_size import SIZE_KEYS, size_of_one_run
from clusterctl_infra.names import MEMBERSHIP_TYPE

from clusterctl.engine.boundary import RunResult
from clusterctl.engine.stack_config import config_of_one_run, with_values, write_config
from clusterctl.engine.state import RESERVATION_TYPE, StackState, StateResource
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.data import bill_lines, data_in, holds_data
from clusterctl.lifecycle.display import Display
from clusterctl.lifecycle.intent import Intent, for_zero_nodes, without_own_values
from clusterctl.lifecycle.last_look import forget_cluster, forgotten, last_look
from clusterctl.lifecycle.stopped import empty_places_bill
from clusterctl.lifecycle.up_runs import go_at_once, places_meanwhile
from clusterctl.text.next_commands import reap_id
from clusterctl.text.quantities import count

UNDOING = " undoing what was made: a cluster gets all of its nodes or none"


def roll_back(change: Change, *, before_text: str, before_state: StackState, intent: Intent, shown: str) -> str:
    """Undoes a failed `up` as far as it should be, and says what is left and what bills.

    `before_text` is the stack's config as it was, `before_state` the state, `shown` the stack as it is typed.
    """
    old = old_size(before_state)
    found = change.engine.export() or StackState()
    if old < intent.config.nodes and not is_as_before(found, before_state):
        change.output.note(UNDOING)
    state = change.repair_state(found, was_cut_off=True)
    if is_as_before(state, before_state):
        write_config(change.engine.environment.config_file, before_text)
        change.finish()
        return nothing_made(state, shown=shown)
    if old == 0 and holds_data(state):
        return _to_zero(change, before_text, intent, state, shown=shown)
    if old == 0:
        return _to_nothing(change, before_text, state, shown=shown)
    write_config(change.engine.environment.config_file, before_text)
    if intent.config.nodes <= old:
        change.finish()
        return what_runs_on(state, nodes=intent.config.nodes, shown=shown)
    kind = intent.config.instance_type_name(intent.catalog)
    places = places_meanwhile(state, nodes=old, instance_type=kind)
    return _to_old_size(change, before_text, old, places=places, shown=shown)


def old_size(before: StackState) -> int:
    """How many nodes the cluster had, dead ones counted; 0: it is new.

    A run that was cut off may have made some slots and no membership: those are somebody's nodes as well.
    """
    membership = before.find(MEMBERSHIP_TYPE)
    members = [] if membership is None else membership.outputs.get("members") or []
    slots = [instance.slot for instance in before.instances]
    return max(len(members), *(slot + 1 for slot in slots)) if slots else 0


def is_as_before(state: StackState, before: StackState) -> bool:
    """Whether a run has made, changed and ended nothing, nor was about to, since the state was as `before`."""
    return not state.pending and _things(state) == _things(before)


def nothing_made(state: StackState, *, shown: str) -> str:
    """The sentence about a run that failed before it made anything."""
    if state.is_empty:
        return "Nothing was made: no node runs, nothing bills."
    if nodes := len(state.machines):
        runs = (
            f"{count(nodes, 'node')} {_runs_on(nodes)}: clusterctl down {shown} ends {'it' if nodes == 1 else 'them'}"
        )
        return f"Nothing was made or changed, and {runs}."
    down = f"clusterctl down {shown}{' --all' if holds_data(state) else ''}"
    return f"Nothing was made or changed, and no node runs; what is kept bills as before: {down} ends it."


def what_runs_on(state: StackState, *, nodes: int, shown: str) -> str:
    """The sentence about a cluster that keeps its size after a failed `up`."""
    slots = {machine.slot for machine in state.machines}
    missing = [str(slot) for slot in range(nodes) if slot not in slots]
    gone = f"{'slot' if len(missing) == 1 else 'slots'} {', '.join(missing)} missing; " if missing else ""
    if not slots:
        held = "what AWS still reserves for them" if state.find(RESERVATION_TYPE) else "what is left of it"
        return f"{gone}no node runs; {held} bills: clusterctl down {shown} ends it."
    runs = f"{count(len(slots), 'node')} {_runs_on(len(slots))}"
    empty = state.empty_places  # of a slot that is missing, or of another type than the machines, which run on
    reserved = f", and {empty_places_bill(empty)}" if empty else ""
    return f"{gone}{runs}{reserved}: clusterctl down {shown} ends them."


def _things(state: StackState) -> list[StateResource]:
    return sorted(
        (resource for resource in state.resources if resource.is_custom),
        key=lambda resource: (resource.urn, resource.id),
    )


def _runs_on(nodes: int) -> str:
    return "runs on and bills" if nodes == 1 else "run on and bill"


def _to_nothing(change: Change, before_text: str, state: StackState, *, shown: str) -> str:
    display, once = Display(change.output, is_ending=True), go_at_once(state)
    result = change.run("destroy", nodes=len(state.instances), display=display, writes_state_once=once)
    text = without_own_values(before_text) if result.succeeded else before_text
    write_config(change.engine.environment.config_file, text)
    if not result.succeeded:
        return _left_over(result, shown=shown)
    if state.cluster_id is not None:
        _look_last(change, state.cluster_id, state)
        # A killed engine may have had inventory and key written without noting it in the state.
        forget_cluster(change.home, change.cluster, cluster_id=state.cluster_id)
    change.finish()
    return "Nothing was kept: no node runs, nothing bills."


def _look_last(change: Change, cluster_id: str, state: StackState) -> None:
    """Asks AWS again, as `down` does: what a killed engine had asked for may be there by now.

    Raises StillBills, CloudError.
    """
    last_look(
        change.clients,
        cluster_id,
        forgotten(state),
        data_since=None,
        tell=change.tell,
        agreed=change.note_agreed,
        again=reap_id(cluster_id, region=change.region, rehearse=change.is_rehearsal),
    )


def _to_zero(change: Change, before_text: str, intent: Intent, state: StackState, *, shown: str) -> str:
    """Ends all nodes and keeps storage; returns the sentence about that.

    The cluster's size stays what it was before: `--nodes` of an `up` that failed is not kept.
    """
    zero = for_zero_nodes(intent, state, change.seen(state)).changes
    kept = {key: value for key, value in zero.items() if key not in SIZE_KEYS}
    write_config(change.engine.environment.config_file, with_values(before_text, kept))
    display, once = Display(change.output, is_ending=True), go_at_once(state)
    result = change.run("up", nodes=len(state.instances), display=display, writes_state_once=once)
    if not result.succeeded:
        return _left_over(result, shown=shown)
    change.finish()
    lines = bill_lines(data_in(state), load_catalog(), region=intent.config.region)
    return f"No node runs; storage and network are kept: {'; '.join(lines)}. clusterctl down {shown} --all ends them."


def _to_old_size(change: Change, before_text: str, nodes: int, *, places: int | None, shown: str) -> str:
    """Takes the cluster back to so many nodes; returns the sentence about that.

    `places`: those reserved in the first of two steps, as when a person makes the cluster smaller; None: one step.
    """
    for reserved in (None,) if places is None else (str(places), None):
        text = with_values(before_text, {**size_of_one_run(nodes), "reserved": reserved})
        with config_of_one_run(change.engine.environment.config_file, text, why="old-size") as config_file:
            result = change.run("up", nodes=nodes, display=Display(change.output), config_file=config_file)
        if not result.succeeded:
            return _left_over(result, shown=shown)
    change.finish()
    return f"Back to {count(nodes, 'node')}, which ran on."


def _left_over(result: RunResult, *, shown: str) -> str:
    there = f"what was made is still there, and bills: clusterctl down {shown} ends it."
    if result.interrupted:
        return f"Undoing it was interrupted: {there}"
    reason = next((refusal.text for refusal in result.refusals), result.stderr)
    return f"Undoing it failed too ({reason}): {there}"
