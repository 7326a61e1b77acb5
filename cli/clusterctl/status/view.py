"""The screen of `clusterctl status`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime, timedelta

from clusterctl_infra.outputs import Inventory

from clusterctl.cost.after_deadline import bills_on_now
from clusterctl.cost.sources import cloud_name, reserved_unknown
from clusterctl.status.event_words import event_json
from clusterctl.status.idle import idle_json, idle_line
from clusterctl.status.judge import NodeStatus
from clusterctl.status.node_report import SpotNotice
from clusterctl.status.overview import Overview
from clusterctl.text.headline import advice, ends, money, rehearsed
from clusterctl.text.next_commands import down_again, extend_again, go_on_with, replace_again, up_again
from clusterctl.text.node_set import fold_names
from clusterctl.text.quantities import clock, count, duration, usd
from clusterctl.text.table import render_table

GONE = ("terminated", "missing")


def status_text(seen: Overview) -> str:
    """The whole screen: one line for the cluster, one per node, and what is out of the ordinary."""
    lines = [headline(seen)]
    if seen.nodes:
        lines.append(_table(seen.inventory, seen.nodes, seen.facts.now))
    return "\n".join([*lines, *(f"  {remark}" for remark in remarks(seen))])


def status_json(seen: Overview) -> dict[str, object]:
    """What `clusterctl status --json` prints; what is not known is null."""
    inventory, facts = seen.inventory, seen.facts
    return {
        "cluster": inventory.cluster,
        "cluster_id": inventory.cluster_id,
        "rehearsal": inventory.rehearsal,
        "down": seen.is_down,
        "ready": seen.ready,
        "started_at": inventory.started_at,
        "deadline": None if inventory.is_hosts else inventory.deadline,
        "deadline_reason": inventory.deadline_reason,
        "usd_per_hour": inventory.usd_per_hour,
        "spent_usd": None if seen.spent_usd is None else round(seen.spent_usd, 4),
        "budget_usd": inventory.budget_usd,
        "generation": inventory.generation,
        "capacity": inventory.capacity,
        "cloud": {"answered": facts.instances is not None, "trouble": facts.cloud_trouble},
        "alarms": None if facts.alarms is None else [alarm.name for alarm in facts.alarms],
        "ssh_trouble": facts.ssh_trouble,
        "reserved": facts.is_reserved,
        "reserved_trouble": facts.reserved_trouble,
        "events_trouble": facts.events_trouble,
        "extend_cut_off": facts.half_extend is not None,
        "unfinished": None if facts.unfinished is None else dataclasses.asdict(facts.unfinished),
        "ended_early": None if facts.early_end is None else facts.early_end.at.isoformat(),
        "idle": idle_json(facts),
        "strays": [{"instance_id": row.instance_id, "slot": row.slot, "state": row.state} for row in seen.strays],
        "nodes": [_node_json(inventory, node) for node in seen.nodes],
    }


def headline(seen: Overview) -> str:
    """`train · 4/4 ready · up 1 h 12 m · about $265.85 of $1000.00 · ends 17:22 UTC (in 3 h 19 m: budget)`."""
    inventory, now = seen.inventory, seen.facts.now
    began = datetime.fromisoformat(inventory.started_at)
    cost = money(inventory, seen.spent_usd)
    if seen.is_down:
        parts = [inventory.name, "down", f"last run began {clock(began, now)}", cost]
    else:
        ready = f"{seen.ready}/{len(seen.nodes)} ready"
        parts = [inventory.name, ready, f"up {duration(now - began)}", cost, ends(inventory, now)]
    return " · ".join(parts) + rehearsed(inventory.rehearsal, inventory.gpus_per_node > 0)


def remarks(seen: Overview) -> list[str]:
    """The lines about the cluster that belong to no single node."""
    inventory, facts = seen.inventory, seen.facts
    lines = []
    if inventory.is_hosts:
        lines += advice(inventory, facts.now)
    elif facts.instances is None:
        lines.append(
            f"{cloud_name(inventory)} did not say what runs ({facts.cloud_trouble}): "
            "what is known comes from the nodes alone"
        )
    if facts.wrong_by is not None:
        way = "ahead of" if facts.wrong_by > timedelta(0) else "behind"
        whose = f"{cloud_name(inventory)}'s"
        by = f"this computer's clock is {duration(abs(facts.wrong_by))} {way} {whose}; the times shown follow {whose}"
        lines.append(f"{by}; next: timedatectl set-ntp true")
    lines += _what_aws_did_not_say(seen)
    lines += [
        f"{alarm.means}, at {clock(alarm.since, facts.now)} (alarm {alarm.name}); next: {down_again(inventory)}"
        for alarm in facts.alarms or ()
    ]
    if facts.ssh_trouble is not None:
        lines.append(f"no node was asked: {facts.ssh_trouble}")
    if seen.strays:
        ids = ", ".join(row.instance_id for row in seen.strays)
        ways = f"{up_again(inventory)}, or {down_again(inventory)}"
        lines.append(f"machines that are in no slot of the cluster: {ids}; next: {ways}")
    if seen.is_down:
        kept = f"storage and network are kept ({usd(inventory.usd_per_hour)}/h, and what bills by use)"
        lines.append(f"{kept}; next: {up_again(inventory)}, or {down_again(inventory)} --all ends the data too")
    if (use := idle_line(facts)) is not None:
        lines.append(use)
    if facts.size_note is not None and not seen.is_down:
        lines.append(f"size: {facts.size_note}")
    lines += _what_is_half_done(seen) or _what_is_under_way(seen)
    lines += _what_is_gone(seen)
    lines += _memberships(seen)
    if failed := {node.slot: node.name for node in seen.nodes if node.state == "failed"}:
        again = up_again(inventory) if inventory.is_hosts else replace_again(inventory.cluster, failed)
        lines.append(f"{count(len(failed), 'node')} failed; next: {again}")
    return lines


def _what_aws_did_not_say(seen: Overview) -> list[str]:
    """The lines about what AWS did not say although it listed the machines, as when a right is missing."""
    inventory, facts, lines = seen.inventory, seen.facts, []
    if facts.instances is not None and facts.reserved_trouble is not None:
        lines.append(reserved_unknown(inventory, facts.reserved_trouble))
    if facts.events_trouble is not None:
        lines.append(f"{cloud_name(inventory)} did not say what it plans for the machines ({facts.events_trouble})")
    return lines


def _memberships(seen: Overview) -> list[str]:
    """The lines about nodes that have another list of nodes, deadline or environment than this computer knows."""
    inventory, lines = seen.inventory, []
    if behind := sum(node.is_behind for node in seen.nodes):
        has = "has" if behind == 1 else "have"
        lines.append(
            f"{count(behind, 'node')} {has} not been told the current list of nodes; next: {up_again(inventory)}"
        )
    if ahead := [node.name for node in seen.nodes if node.is_ahead]:
        why = "newer than what this computer knows: an older state was put back, or another computer changed it"
        lines.append(f"{fold_names(ahead)}: the membership there is {why}; next: {up_again(inventory)}")
    if split := [node.name for node in seen.nodes if node.is_split]:
        what = f"another membership under the same number {inventory.generation}"
        lines.append(f"{fold_names(split)}: {what}; next: {up_again(inventory)}")
    return lines


def _what_is_half_done(seen: Overview) -> list[str]:
    """The line about an `extend` that was cut off; none after the deadline, when the earlier end has come."""
    half, inventory, now = seen.facts.half_extend, seen.inventory, seen.facts.now
    if half is None or seen.is_down or datetime.fromisoformat(inventory.deadline) <= now:
        return []
    means = f"parts of the cluster may still end at {clock(half.before, now)}, and the earlier end holds"
    again = extend_again(inventory.cluster, until=half.until, budget_usd=half.budget_usd)
    return [f"an extend was interrupted: {means}; next: {again}"]


def _what_is_under_way(seen: Overview) -> list[str]:
    """The line about a command that is changing the cluster now, or that was cut off while it did."""
    run, inventory, end = seen.facts.unfinished, seen.inventory, seen.facts.early_end
    if run is None or (end is not None and end.is_reaped):
        return []
    if run.pid is not None:
        return [f"clusterctl {run.verb} is changing it now (pid {run.pid})"]
    return [go_on_with(run.verb, inventory)]


def _what_is_gone(seen: Overview) -> list[str]:
    """The line about what became of machines that are not there, with the command that goes on from it."""
    inventory, facts = seen.inventory, seen.facts
    if heard := [node.name for node in seen.nodes if node.state == "missing" and node.checks is not None]:
        return [_made_elsewhere(inventory, heard)]
    is_over = datetime.fromisoformat(inventory.deadline) <= facts.now
    if is_over and any(row.is_alive for row in facts.instances or ()):
        return [f"machines still run after the deadline; next: {down_again(inventory)}"]
    if facts.early_end is not None and facts.early_end.is_reaped:
        return [_reaped(inventory)]
    if is_over and seen.nodes and facts.instances is not None:
        on = bills_on_now(inventory, ways_out=facts.ways_out)
        still = "" if on is None else f", and still costs {on}"
        return [f"ended at its deadline{still}; next: {down_again(inventory)}"]
    never = sum(not node.was_made for node in seen.nodes)
    gone = sum(node.state in GONE for node in seen.nodes) - never
    if not gone:
        is_being_made = facts.unfinished is not None and facts.unfinished.pid is not None
        is_shown = never > 0 and not is_being_made
        return [f"{count(never, 'machine')} not made; next: {up_again(inventory)}"] if is_shown else []
    again = f"`up` makes {'it' if gone == 1 else 'them'} anew, same name and address; next: {up_again(inventory)}"
    if never:
        return [f"{count(gone, 'machine')} gone, {never} not made; {again}"]
    if facts.is_reserved is False and gone == len(seen.nodes):
        what = f"{count(gone, 'machine')} gone, and nothing is reserved or bills for them"
        return [f"{what}; next: {up_again(inventory)}, or {down_again(inventory)}"]
    return [f"{count(gone, 'machine')} gone; {again}"]


def _made_elsewhere(inventory: Inventory, heard: Sequence[str]) -> str:
    """The line about nodes that answer although AWS, or the rehearsed region, has no machine for them."""
    answer = f"{fold_names(heard)} {'answers' if len(heard) == 1 else 'answer'}"
    if inventory.rehearsal:
        return f"{answer}, and this home's rehearsed region has no such machine: another home made the cluster"
    return f"{answer}, and AWS has no such machine: these credentials are of another account than the cluster's"


def _reaped(inventory: Inventory) -> str:
    if inventory.rehearsal:
        left = "the rehearsed region here has nothing of it, unless another home or another computer made it"
    else:
        left = "AWS has no machine, no reservation and no network of it"
    return f"reaped: {left}; {down_again(inventory)} removes what this computer knows of it"


def _node_json(inventory: Inventory, node: NodeStatus) -> dict[str, object]:
    return {
        "slot": node.slot,
        "rank": node.rank,
        "name": node.name,
        "state": node.state,
        "phase": node.phase,
        "private_ip": node.private_ip,
        "instance_id": node.instance_id,
        "gpus": inventory.gpus_per_node,
        "since": None if node.since is None else node.since.isoformat(),
        "note": node.note,
        "membership": _membership_word(node),
        "notice": None if node.notice is None else _notice_json(node.notice),
        "events": None if node.events is None else [event_json(event) for event in node.events],
        "jobs": list(node.jobs),
        "checks": None if node.checks is None else [dataclasses.asdict(check) for check in node.checks],
    }


def _membership_word(node: NodeStatus) -> str | None:
    """`behind`, `ahead`, `split`; None: as here, or not heard."""
    words = {"behind": node.is_behind, "ahead": node.is_ahead, "split": node.is_split}
    return next((word for word, holds in words.items() if holds), None)


def _notice_json(notice: SpotNotice) -> dict[str, str]:
    return {"kind": notice.kind, "time": notice.time.isoformat(), "at": notice.at.isoformat()}


def _table(inventory: Inventory, nodes: Sequence[NodeStatus], now: datetime) -> str:
    has_gpus = inventory.gpus_per_node > 0
    header = ["node", "rank", "state", "ip", *(["gpus"] if has_gpus else []), "since", "note"]
    rows = []
    for node in nodes:
        state = node.state if node.phase is None else f"{node.state}: {node.phase}"
        since = "" if node.since is None else duration(max(timedelta(0), now - node.since))
        gpus = [str(inventory.gpus_per_node)] if has_gpus else []
        rows.append([node.name, str(node.rank), state, node.private_ip, *gpus, since, node.note or ""])
    return render_table(header, rows, right={"rank", "gpus"})
