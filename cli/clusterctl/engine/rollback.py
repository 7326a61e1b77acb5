"""All or nothing: a new cluster that failed is ended, a grown one goes back to its old size."""

from __future__ import annotations

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.names import MEMBERSHIP_TYPE

from clusterctl.engine.change import Change
from clusterctl.engine.data import bill_lines, data_in, holds_data
from clusterctl.engine.display import Display
from clusterctl.engine.intent import Intent, for_zero_nodes, without_own_values
from clusterctl.engine.run import RunResult
from clusterctl.engine.stack_config import read_config, with_values, write_config
from clusterctl.engine.state import StackState


def roll_back(change: Change, *, before_text: str, before_state: StackState, intent: Intent) -> str:
    """Undoes a failed `up` as far as it should be, and says what is left and what bills."""
    change.output.note(" undoing what was made: a cluster is whole or not at all")
    state = change.engine.export() or StackState()
    state = change.mend(state, was_cut_off=True)
    old = len(before_state.instances)
    is_new = old == 0 or before_state.find(MEMBERSHIP_TYPE) is None
    if is_new and holds_data(state):
        return _to_zero(change, intent, state)
    if is_new:
        return _to_nothing(change, before_text)
    write_config(change.engine.environment.config_file, before_text)
    if intent.config.nodes <= old:
        missing = sorted(set(range(intent.config.nodes)) - {one.slot for one in state.instances})
        gone = f"slot {', '.join(map(str, missing))} is missing; " if missing else ""
        return f"{gone}{len(state.instances)} nodes run on."
    return _to_old_size(change, before_text, old)


def _to_nothing(change: Change, before_text: str) -> str:
    result = change.run("destroy", nodes=0, display=Display(change.output, is_ending=True))
    if not result.succeeded:
        return _left_over(result)
    write_config(change.engine.environment.config_file, without_own_values(before_text))
    change.finish()
    return "Nothing was kept: no node runs, nothing bills."


def _to_zero(change: Change, intent: Intent, state: StackState) -> str:
    config_file = change.engine.environment.config_file
    write_config(config_file, with_values(read_config(config_file), for_zero_nodes(intent, state).changes))
    result = change.run("up", nodes=0, display=Display(change.output, is_ending=True))
    if not result.succeeded:
        return _left_over(result)
    change.finish()
    lines = bill_lines(data_in(state), load_catalog(), region=intent.config.region)
    return f"No node runs; storage and network are kept: {'; '.join(lines)}. clusterctl down --all ends them."


def _to_old_size(change: Change, before_text: str, nodes: int) -> str:
    config_file = change.engine.environment.config_file
    temporary = config_file.with_name(f".{config_file.stem}.old-size.yaml")
    write_config(temporary, with_values(before_text, {"nodes": str(nodes)}))
    try:
        result = change.run("up", nodes=nodes, display=Display(change.output), config_file=temporary)
    finally:
        temporary.unlink(missing_ok=True)
    if not result.succeeded:
        return _left_over(result)
    change.finish()
    return f"Back to {nodes} nodes, which ran on."


def _left_over(result: RunResult) -> str:
    if result.interrupted:
        return "Undoing it was interrupted: what was made is still there, and bills."
    said = next((refusal.text for refusal in result.refusals), result.said)
    return f"Undoing it failed too ({said}): what was made is still there, and bills."
