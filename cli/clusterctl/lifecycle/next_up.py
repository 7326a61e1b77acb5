"""What the next `up` would do to a cluster that exists: told from the state alone, so that `plan` asks AWS nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from clusterctl_infra.config.flag_size import size_in_file, typed_size
from clusterctl_infra.errors import ClusterctlError, ConfigError
from clusterctl_infra.names import REHEARSAL_SUFFIX
from clusterctl_infra.outputs import Inventory
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cost.sighting_file import read_seen
from clusterctl.engine.call import PulumiEngine
from clusterctl.engine.environment import engine_environment
from clusterctl.engine.known_clusters import cluster_names
from clusterctl.engine.stack import Stack
from clusterctl.engine.stack_config import config_values, read_config
from clusterctl.engine.stack_plan import config_folder
from clusterctl.engine.state import StackState
from clusterctl.home import Home
from clusterctl.lifecycle.checks.known import WithPlan
from clusterctl.lifecycle.checks.table import told_by_plan
from clusterctl.lifecycle.cluster_name import other_name
from clusterctl.lifecycle.final_sum import inventory_here
from clusterctl.lifecycle.intent import Intent, for_up, plan_of, read_intent
from clusterctl.lifecycle.preview import NodePreview, ended, late, late_lines, made_anew, made_anew_lines
from clusterctl.text.next_commands import stack_words
from clusterctl.text.node_set import fold_names
from clusterctl.text.quantities import clock


@dataclass(frozen=True, kw_only=True)
class NextUp:
    """What happens to the nodes; names by slot."""

    makes: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    replaces: tuple[NodePreview, ...] = ()
    """Made anew: the data on their disks is lost."""
    later: tuple[NodePreview, ...] = ()
    """Running on without what only a new machine takes on."""
    is_reserved: bool = True
    """The places of those made anew are held meanwhile."""
    extended_until: datetime | None = None
    """Where `extend` moved the end of this run: caps.runtime of the file counts from the next run on."""
    refused: tuple[str, ...] = ()
    """Why `up` would change nothing."""


def next_up(stack: Stack, *, home: Home, environ: Mapping[str, str], rehearse: bool, now: datetime) -> NextUp | None:
    """What `up` would do, by the state that the engine has; None where this computer knows no cluster of the stack.

    Raises EngineError, ConfigError.
    """
    if cluster_of(stack, home=home, is_rehearsal=rehearse or stack.is_rehearsal_project) is None:
        return None
    environment = engine_environment(stack, rehearse=rehearse, home=home, environ=environ)
    state = PulumiEngine(stack=stack, environment=environment).export()
    if state is None or state.cluster_id is None:
        return None
    text = read_config(config_folder(stack, home=home, rehearse=rehearse) / stack.config_file.name)
    size = typed_size(config_values(text), None, in_file=size_in_file(stack.cluster_file))
    written = read_intent(stack, text, nodes=None, given=size, fresh_prices=home.prices_file)
    intent = for_up(written, state, read_seen(home.observed_file(state.cluster_id)))
    return foresee(stack, intent, state, rehearse=rehearse, now=now)


def foresee(stack: Stack, intent: Intent, state: StackState, *, rehearse: bool, now: datetime) -> NextUp:
    """What an `up` of this intent does to the state. Pure but for the lines of cluster.yaml that a refusal names."""
    cluster_plan = plan_of(intent, state, now=now)
    refused = refusals(stack, intent, cluster_plan, state, rehearse=rehearse, now=now)
    if state.cluster_name not in (None, intent.config.name):
        return NextUp(refused=refused)
    there = {machine.slot for machine in state.machines}
    anew = made_anew(state, intent.config, cluster_plan)
    return NextUp(
        makes=tuple(slot.name for slot in cluster_plan.slots if slot.slot not in there),
        ends=ended(state, cluster_plan),
        replaces=anew,
        later=late(state, cluster_plan, except_slots=(node.slot for node in anew)),
        is_reserved=cluster_plan.price.is_reserved,
        extended_until=intent.settings.until,
        refused=refused,
    )


def refusals(
    stack: Stack, intent: Intent, cluster_plan: ClusterPlan, state: StackState, *, rehearse: bool, now: datetime
) -> tuple[str, ...]:
    """All that `up` would refuse without asking AWS, in its order and words."""
    shown = stack_words(stack.typed or stack.directory, stack_name=stack.name, rehearse=rehearse)
    held = state.cluster_name
    if held not in (None, intent.config.name):
        return (other_name(held, name=intent.config.name, shown=shown, source=stack.source).message,)
    known = WithPlan(stack=stack, state=state, shown=shown, now=now, held=None, intent=intent, plan=cluster_plan)
    told: list[str] = []
    for check in told_by_plan():
        try:
            check.refuse(known)
        except ConfigError as e:
            told += [problem.strip() for problem in e.problems] or [e.message]
        except ClusterctlError as e:
            told.append(e.message)
    return tuple(dict.fromkeys(told))


def cluster_of(stack: Stack, *, home: Home, is_rehearsal: bool) -> Inventory | None:
    """The cluster that was last run from the stack's folder, whatever name its file says now."""
    for name in cluster_names(home):
        known = inventory_here(home, name) if name.endswith(REHEARSAL_SUFFIX) == is_rehearsal else None
        if known is not None and (known.stack_dir, known.stack_name) == (str(stack.directory), stack.name):
            return known
    return None


def next_up_rows(found: NextUp, *, now: datetime) -> list[tuple[str, str]]:
    """The lines of `plan` about it: a word and what it is about."""
    rows = [("makes", fold_names(found.makes))] if found.makes else []
    rows += [("ends", f"{fold_names(found.ends)}: the data on their disks is lost")] if found.ends else []
    rows += [("replace", line) for line in made_anew_lines(found.replaces, is_reserved=found.is_reserved)]
    rows += [("later", line) for line in late_lines(found.later)]
    if found.extended_until is not None:
        told = f"moved to {clock(found.extended_until, now)} by extend; caps.runtime counts from the next run on"
        rows.append(("deadline", told))
    rows += [("refused", line) for line in found.refused]
    return rows or [("nothing", "no node is made, ended or replaced")]


def next_up_json(found: NextUp) -> dict[str, object]:
    """`next_up` of `plan --json`."""

    def rows(previews: tuple[NodePreview, ...]) -> list[dict[str, object]]:
        return [{"node": node.name, "reasons": list(node.reasons)} for node in previews]

    return {
        "makes": list(found.makes),
        "ends": list(found.ends),
        "replaces": rows(found.replaces),
        "later": rows(found.later),
        "extended_until": None if found.extended_until is None else found.extended_until.isoformat(),
        "refused": list(found.refused),
    }
