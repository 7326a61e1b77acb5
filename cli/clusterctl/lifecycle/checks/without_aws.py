"""Checks that ask this computer and the state: each raises the error that a person should see."""

from __future__ import annotations

import shutil

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.plan.inventory import proxy_command

from clusterctl.engine.stack import refuse_without_program
from clusterctl.engine.stack_config import refuse_read_only
from clusterctl.engine.stack_plan import judged_for_aws
from clusterctl.engine.state_file import state_file
from clusterctl.lifecycle.checks.known import WithEngine, WithFolder, WithHold, WithIntent, WithPlan, WithState
from clusterctl.lifecycle.cluster_name import refuse_other_name, refuse_renamed_project, refuse_shared_project
from clusterctl.lifecycle.data import refuse_harm
from clusterctl.lifecycle.extend_checks import refuse_machines_anew, refuse_times
from clusterctl.lifecycle.fixed_at_birth import (
    refuse_other_home,
    refuse_other_launch,
    refuse_other_network,
    refuse_other_region,
)
from clusterctl.lifecycle.intent import refuse
from clusterctl.lifecycle.rank_order import refuse_reorder
from clusterctl.lifecycle.whole_cluster import refuse_gaps, refuse_half_made
from clusterctl.ssh.way_in import missing_programs
from clusterctl.system.disk_space import COPIES, MIB, NEEDED_BYTES, refuse_without_space


def program(known: WithFolder | WithIntent) -> None:
    refuse_without_program(known.stack)


def space_at_home(known: WithFolder) -> None:
    refuse_without_space(known.home.path)


def config_is_writable(known: WithEngine) -> None:
    refuse_read_only(known.engine.environment.config_file)


def space_for_config(known: WithEngine) -> None:
    refuse_without_space(known.engine.environment.config_file.parent, needed_bytes=MIB)


def space_for_state(known: WithEngine) -> None:
    """A state in a bucket needs no room here."""
    file = state_file(known.engine.backend_url(), known.engine.stack)
    if file is not None:
        size_bytes = file.stat().st_size if file.exists() else 0
        refuse_without_space(file.parent, needed_bytes=NEEDED_BYTES + COPIES * size_bytes)


def ranks_are_ordered(known: WithIntent) -> None:
    if known.reorders_ranks:
        refuse_reorder(known.intent, source=known.source)


def home(known: WithHold) -> None:
    if known.change.is_rehearsal:
        refuse_other_home(known.state, known.change.home.path)


def region_asked(known: WithHold) -> None:
    refuse_other_region(known.state, known.change.region, source=known.change.stack.source)


def project(known: WithHold) -> None:
    if known.state.cluster_id is None:
        refuse_renamed_project(known.change)


def shared_project(known: WithState) -> None:
    refuse_shared_project(known.change, known.state, known.change.name)


def slot_has_machine(known: WithState) -> None:
    if known.slot is not None:
        refuse_gaps(known.state, known.slot, shown=known.shown)


def cluster_is_whole(known: WithState) -> None:
    refuse_half_made(known.state, cluster=known.change.cluster, shown=known.shown, now=known.now)


def name(known: WithIntent) -> None:
    refuse_other_name(known.change, known.state, known.intent.config.name)


def region_written(known: WithIntent) -> None:
    refuse_other_region(known.state, known.intent.config.region, source=known.source)


def data(known: WithIntent) -> None:
    refuse_harm(known.state, known.intent.config, known.intent.catalog, source=known.source)


def network(known: WithIntent) -> None:
    refuse_other_network(known.state, known.intent.config, source=known.source, shown=known.shown)


def launch(known: WithPlan) -> None:
    refuse_other_launch(known.state, known.plan, source=known.source, shown=known.shown)


def deadline(known: WithPlan) -> None:
    if known.request is not None and known.deadline_before is not None:
        before = known.deadline_before
        refuse_times(
            known.change, known.request, known.intent, known.plan, before=before, shown=known.shown, now=known.now
        )


def plan(known: WithPlan) -> None:
    held, planned = known.held, known.plan
    file = known.stack.config_file if held is None else held.engine.environment.config_file
    if held is not None and held.verb == "up" and not held.is_rehearsal:
        planned = judged_for_aws(planned, known.intent.config)
    # A run that ends before its block begins is refused here: the block would be bought and stay empty.
    begins = known.now if known.offering is None else max(known.now, known.offering.starts_at)
    refuse(known.intent, planned, stack=known.stack, config_file=file, shown=known.shown, now=begins)


def machines_stay(known: WithPlan) -> None:
    refuse_machines_anew(known.state, known.intent.config, known.plan, source=known.source)


def way_in(known: WithPlan) -> None:
    """Private nodes that nobody here could reach would boot and bill unseen."""
    way = None if known.change.is_rehearsal else proxy_command(known.intent.config, known.plan)
    if way is not None and (missing := missing_programs(way, which=shutil.which)) is not None:
        raise ClusterctlError(f"{missing}. Nothing was created")
