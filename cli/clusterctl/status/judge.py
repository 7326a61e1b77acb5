"""The state of each node, from what AWS and the node itself say. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from clusterctl_infra.outputs import Inventory, InventoryNode
from clusterctl_infra.replaceable import late_facts

from clusterctl.cloud.instances import InstanceState
from clusterctl.cloud.scheduled_events import ScheduledEvent
from clusterctl.ssh.failure_hints import failure_line
from clusterctl.ssh.failures import NodeFailure
from clusterctl.status.event_words import event_words
from clusterctl.status.facts import Facts
from clusterctl.status.ledger import replaced
from clusterctl.status.node_report import FAILED, READY, NodeCheck, NodeReport, SpotNotice
from clusterctl.text.pending_settings import pending_settings_line
from clusterctl.text.quantities import clock, duration

State = Literal["ready", "booting", "failed", "unreachable", "stopped", "terminated", "missing", "unknown"]
BOOT_TIME = timedelta(minutes=10)
"""A silent machine that is younger counts as booting; a large GPU node takes 5 to 8 minutes to its first answer."""
NOT_YET = ("refused", "timeout", "unreachable", "proxy", "lost", "protocol")


@dataclass(frozen=True, kw_only=True)
class NodeStatus:
    """One line of `clusterctl status`."""

    slot: int
    rank: int
    name: str
    state: State
    phase: str | None
    """How far its boot has come, or where it failed."""
    private_ip: str
    instance_id: str | None
    since: datetime | None
    note: str | None
    checks: tuple[NodeCheck, ...] | None = None
    """What the node checked when it booted; None if it did not answer."""
    is_behind: bool = False
    """Whether the node itself says that it has not got the newest membership."""
    is_ahead: bool = False
    """Whether the node itself says that it has a newer membership than this computer knows."""
    is_split: bool = False
    """Whether its membership has the number known here, but differs from this computer's or from most nodes'."""
    notice: SpotNotice | None = None
    """What AWS told the node, if it is a spot machine."""
    jobs: tuple[str, ...] = ()
    """The jobs that run on it."""
    events: tuple[ScheduledEvent, ...] | None = None
    """What AWS plans for its machine; None: not known."""

    @property
    def is_ready(self) -> bool:
        """Whether the node itself said that it is ready."""
        return self.state == "ready"

    @property
    def was_made(self) -> bool:
        """Whether the node has a machine, or had one."""
        return self.state != "missing" or self.instance_id is not None


@dataclass(frozen=True, kw_only=True)
class _Verdict:
    state: State
    phase: str | None = None
    since: datetime | None = None
    note: str | None = None


def judge(inventory: Inventory, facts: Facts) -> tuple[NodeStatus, ...]:
    """Every node's state, by slot."""
    split = split_slots(inventory, facts.answers)
    return tuple(_judged(inventory, node, facts, is_split=node.slot in split) for node in inventory.nodes)


def split_slots(inventory: Inventory, answers: Mapping[int, NodeReport | NodeFailure]) -> frozenset[int]:
    """The slots whose node has the generation that is known here, but another deadline, or other content than most.

    If several contents are equally frequent, the one that the lowest slot has is taken to be right.
    """
    known, deadline = inventory.generation, datetime.fromisoformat(inventory.deadline)
    same = {
        slot: answer
        for slot, answer in sorted(answers.items())
        if isinstance(answer, NodeReport) and answer.generation == known > 0
    }
    contents = Counter(report.membership for report in same.values() if report.membership is not None)
    right = max(contents, key=lambda content: contents[content], default=None)  # a tie goes to the first one met
    return frozenset(
        slot
        for slot, report in same.items()
        if report.membership not in (None, right) or (report.deadline is not None and report.deadline != deadline)
    )


def strays(inventory: Inventory, facts: Facts) -> tuple[InstanceState, ...]:
    """Living instances of this cluster that no slot of the inventory knows."""
    known = {node.slot: _machine(node, facts) for node in inventory.nodes}
    taken = {machine.instance_id for machine in known.values() if machine is not None}
    return tuple(row for row in facts.instances or () if row.is_alive and row.instance_id not in taken)


def _judged(inventory: Inventory, node: InventoryNode, facts: Facts, *, is_split: bool) -> NodeStatus:
    machine = _machine(node, facts)
    answer = facts.answers.get(node.slot)
    if facts.instances is None:
        verdict = _by_answer_alone(answer)
    elif machine is None:
        verdict = _gone(node, facts)
    elif machine.state in ("stopping", "stopped"):
        verdict = _Verdict(state="stopped", note=machine.reason)
    else:
        verdict = _alive(machine, answer, facts.now)
    if isinstance(answer, NodeFailure) and verdict.note == answer.message:
        verdict = replace(verdict, note=failure_line(answer, inventory, node))
    events = _events(machine, facts)
    notes = [verdict.note, *_notes(inventory, node, answer, facts)]
    notes += [event_words(event, inventory, node, facts.now) for event in events or ()]
    if is_split:
        notes.append(f"split: another membership {inventory.generation} than the others have or this computer knows")
    if machine is not None and (waiting := late_facts(machine.birth, inventory.birth)):
        notes.append(pending_settings_line(waiting))
    return NodeStatus(
        slot=node.slot,
        rank=node.rank,
        name=node.name,
        state=verdict.state,
        phase=verdict.phase,
        private_ip=node.private_ip,
        instance_id=node.instance_id if machine is None else machine.instance_id,
        since=verdict.since,
        note="; ".join(note for note in notes if note) or None,
        checks=answer.checks if isinstance(answer, NodeReport) else None,
        is_behind=_is_behind(inventory, answer) and not _has_failed(answer),
        is_ahead=_is_ahead(inventory, answer),
        is_split=is_split,
        notice=answer.notice if isinstance(answer, NodeReport) else None,
        jobs=answer.jobs if isinstance(answer, NodeReport) else (),
        events=events,
    )


def _events(machine: InstanceState | None, facts: Facts) -> tuple[ScheduledEvent, ...] | None:
    if facts.events is None:
        return None
    return tuple(event for event in facts.events if machine is not None and event.instance_id == machine.instance_id)


def _machine(node: InventoryNode, facts: Facts) -> InstanceState | None:
    """The living machine in the slot: the one the inventory names, else the newest."""
    alive = [row for row in facts.instances or () if row.slot == node.slot and row.is_alive]
    named = [row for row in alive if row.instance_id == node.instance_id]
    oldest = datetime.min.replace(tzinfo=UTC)
    return named[0] if named else max(alive, key=lambda row: row.launched_at or oldest, default=None)


def _gone(node: InventoryNode, facts: Facts) -> _Verdict:
    ended = [row for row in facts.instances or () if row.slot == node.slot]
    named = [row for row in ended if row.instance_id == node.instance_id] or ended[-1:]
    if named:
        return _Verdict(state="terminated", note=named[0].reason)
    if node.instance_id is None:
        return _Verdict(state="missing", note="no machine was made for it")
    return _Verdict(state="missing", note=f"AWS no longer knows {node.instance_id}")


def _alive(machine: InstanceState, answer: NodeReport | NodeFailure | None, now: datetime) -> _Verdict:
    if isinstance(answer, NodeReport):
        return _by_report(answer)
    if machine.state == "pending":
        return _Verdict(state="booting", phase="machine starts", since=machine.launched_at)
    if answer is None:
        return _Verdict(state="unknown")
    is_young = machine.launched_at is not None and now - machine.launched_at < BOOT_TIME
    # A node that accepts connections and then says nothing has come further than booting: it hangs.
    is_frozen = answer.kind == "timeout" and answer.phase != "connect"
    if is_young and answer.kind in NOT_YET and not is_frozen:
        return _Verdict(state="booting", phase="no SSH yet", since=machine.launched_at, note=answer.message)
    return _Verdict(state="unreachable", note=answer.message)


def _by_answer_alone(answer: NodeReport | NodeFailure | None) -> _Verdict:
    if isinstance(answer, NodeReport):
        return _by_report(answer)
    if answer is None:
        return _Verdict(state="unknown")
    return _Verdict(state="unknown", note=answer.message)


def _by_report(report: NodeReport) -> _Verdict:
    since = report.since
    if report.phase == READY:
        late = f"{report.failed_phase}: {report.message}" if report.message else None  # a script after `ready`
        return _Verdict(state="ready", since=since, note=late)
    if report.phase == FAILED:
        return _Verdict(state="failed", phase=report.failed_phase, since=since, note=report.message)
    return _Verdict(state="booting", phase=report.phase, since=since)


def _notes(
    inventory: Inventory, node: InventoryNode, answer: NodeReport | NodeFailure | None, facts: Facts
) -> list[str]:
    notes = _reported_by_node(answer, facts.now) if isinstance(answer, NodeReport) else []
    if _is_behind(inventory, answer) and not _has_failed(answer):
        notes.append("not yet told about the current list of nodes")
    if isinstance(answer, NodeReport) and _is_ahead(inventory, answer):
        notes.append(f"ahead: it has membership {answer.generation}, this computer knows {inventory.generation}")
    before = replaced(facts.ledger, node.slot, since=datetime.fromisoformat(inventory.started_at))
    if before is not None and before.ended_at is not None:
        notes.append(f"replaced {duration(facts.now - before.ended_at)} ago (was {before.instance_id})")
    return notes


def _is_behind(inventory: Inventory, answer: NodeReport | NodeFailure | None) -> bool:
    return isinstance(answer, NodeReport) and answer.generation < inventory.generation


def _has_failed(answer: NodeReport | NodeFailure | None) -> bool:
    """Whether the node's boot failed. Such a node takes no list of nodes: it needs another machine, which gets the
    list.
    """
    return isinstance(answer, NodeReport) and answer.phase == FAILED


def _is_ahead(inventory: Inventory, answer: NodeReport | NodeFailure | None) -> bool:
    return isinstance(answer, NodeReport) and answer.generation > inventory.generation


def _reported_by_node(report: NodeReport, now: datetime) -> list[str]:
    watch = [f"its watch fails: {failure}" for failure in report.watch]
    jobs = [f"job {job}" for job in report.jobs]
    return [*_noticed(report, now), *_failed_checks(report), *watch, *jobs]


def _noticed(report: NodeReport, now: datetime) -> list[str]:
    """What AWS told a spot machine."""
    notice = report.notice
    if notice is None:
        return []
    if notice.kind == "interruption":
        return [f"AWS takes it back at {clock(notice.time, now)} (spot)"]
    return [f"AWS may take it back soon (spot; it said so at {clock(notice.time, now)})"]


def _failed_checks(report: NodeReport) -> list[str]:
    """The failed checks, without those that the node's own message names already."""
    lines = [f"{check.name}: {check.detail}" for check in report.checks if check.verdict == "failed"]
    return [each for each in lines if each not in (report.message or "")]
