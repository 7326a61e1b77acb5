"""Nodes whose boot or script failed: found by asking them, replaced by `up` when somebody agrees to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterctl_infra.outputs import Inventory
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.engine.state import StackState
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.final_sum import known_here
from clusterctl.output import Output
from clusterctl.ssh.failures import NodeFailure
from clusterctl.status.node_answers import asked_nodes, usual_wait_s
from clusterctl.status.node_report import FAILED, NodeReport
from clusterctl.text.next_commands import replace_slot
from clusterctl.text.quantities import count, usd

REPLACE_FAILED = "--replace-failed"


@dataclass(frozen=True, kw_only=True)
class FailedNode:
    """A node that reports that it failed; it stays failed until its machine is replaced."""

    slot: int
    name: str
    instance_id: str
    why: str
    """`in scripts: setup.sh: exit 3 after 2 s`."""


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How the person who typed this `up` can agree to replace nodes."""

    agrees_by_flag: bool
    """`--replace-failed`."""
    may_ask: bool
    """Whether the person may be asked: neither `--yes` nor `--json` was given."""
    again: str
    """The command line that agrees to the replacement."""


def failed_nodes(change: Change, state: StackState, slots: Collection[int]) -> tuple[FailedNode, ...]:
    """The nodes of these slots that have failed, by slot. A node that does not answer is not among them."""
    known = known_here(change.home, change.cluster, cluster_id=state.cluster_id) if change.has_machines else None
    if known is None:
        return ()
    there = {(machine.slot, machine.instance_id) for machine in state.machines if machine.slot in slots}
    nodes = tuple(node for node in known.nodes if (node.slot, node.instance_id) in there)
    if not nodes:
        return ()
    answers, _ = asked_nodes(
        known, nodes, change.home, ssh_dir=Path.home() / ".ssh", connect_timeout_s=usual_wait_s(known)
    )
    return failed_of(known, answers)


def failed_of(inventory: Inventory, answers: Mapping[int, NodeReport | NodeFailure]) -> tuple[FailedNode, ...]:
    """The nodes whose answer says that they failed, by slot. Pure."""
    found = []
    for node in inventory.nodes:
        report = answers.get(node.slot)
        if isinstance(report, NodeReport) and report.phase == FAILED and node.instance_id is not None:
            why = f"in {report.failed_phase or '?'}: {report.message or 'no message'}"
            found.append(FailedNode(slot=node.slot, name=node.name, instance_id=node.instance_id, why=why))
    return tuple(found)


def agreed_to(
    failed: Sequence[FailedNode], cluster_plan: ClusterPlan, asking: Asking, output: Output, *, cluster: str
) -> tuple[FailedNode, ...]:
    """The nodes to replace: all, if the flag or the person at the terminal agrees; else none.

    If nobody was asked, a line says so.
    """
    if not failed:
        return ()
    for node in failed:
        output.note(f"  failed   {node.name} {node.why}")
    if asking.agrees_by_flag:
        output.note(f"  replace  {lost_words(failed)}")
        return tuple(failed)
    if asking.may_ask and output.can_ask:
        if output.confirm(replace_question(failed, cluster_plan)):
            return tuple(failed)
        return ()
    left = f"{'it is' if len(failed) == 1 else 'they are'} not replaced, because nobody was asked"
    first = replace_slot(cluster, failed[0].slot)
    output.note(f"           {left}; next: {asking.again}, or for {failed[0].name} alone: {first}")
    return ()


def replace_question(failed: Sequence[FailedNode], cluster_plan: ClusterPlan) -> str:
    """`Replace the machine of train-1? The data on its disks is lost; the price stays $221.54/h.` Pure."""
    names = ", ".join(node.name for node in failed)
    machines = "the machine" if len(failed) == 1 else f"the {count(len(failed), 'machine')}"
    whose = "its" if len(failed) == 1 else "their"
    rate = f"{usd(cluster_plan.price.total_usd_per_hour)}/h"
    is_spot = cluster_plan.price.spot is not None
    risk = " No place is reserved: AWS may have no spot machine to put there." if is_spot else ""
    return f"Replace {machines} of {names}? The data on {whose} disks is lost; the price stays {rate}.{risk}"


def lost_words(failed: Sequence[FailedNode]) -> str:
    """`train-1, train-3: the data on their disks is lost`. Pure."""
    whose = "its disks" if len(failed) == 1 else "their disks"
    return f"{', '.join(node.name for node in failed)}: the data on {whose} is lost"
