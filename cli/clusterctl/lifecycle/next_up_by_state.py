"""Finds out what the next `up` would do to a cluster that exists, from the state alone: AWS is asked nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from clusterctl_infra.config.flag_size import size_in_file, typed_size
from clusterctl_infra.errors import ClusterctlError, ConfigError
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cost.sighting_file import read_seen
from clusterctl.engine.call import PulumiEngine
from clusterctl.engine.environment import engine_environment
from clusterctl.engine.stack import Stack
from clusterctl.engine.stack_config import config_values, read_config
from clusterctl.engine.stack_plan import config_folder
from clusterctl.engine.state import StackState
from clusterctl.home import Home
from clusterctl.lifecycle.checks.known import WithPlan
from clusterctl.lifecycle.checks.table import checks_run_by_plan
from clusterctl.lifecycle.cluster_name import other_name
from clusterctl.lifecycle.intent import Intent, for_up, plan_of, read_intent
from clusterctl.lifecycle.next_up import NextUp
from clusterctl.lifecycle.preview import ended, late, made_anew
from clusterctl.text.next_commands import stack_words


def next_up(stack: Stack, *, home: Home, environ: Mapping[str, str], rehearse: bool, now: datetime) -> NextUp | None:
    """What `up` would do; None where the engine's state has no cluster of the stack.

    Raises EngineError, ConfigError.
    """
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
    """What `up` would refuse by those of its checks that `plan` runs, in its order and words."""
    shown = stack_words(stack.typed or stack.directory, stack_name=stack.name, rehearse=rehearse)
    held = state.cluster_name
    if held not in (None, intent.config.name):
        return (other_name(held, name=intent.config.name, shown=shown, source=stack.source).message,)
    known = WithPlan(stack=stack, state=state, shown=shown, now=now, held=None, intent=intent, plan=cluster_plan)
    messages: list[str] = []
    for check in checks_run_by_plan():
        try:
            check.refuse(known)
        except ConfigError as e:
            messages += [problem.strip() for problem in e.problems] or [e.message]
        except ClusterctlError as e:
            messages.append(e.message)
    return tuple(dict.fromkeys(messages))
