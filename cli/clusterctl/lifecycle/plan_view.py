"""What `clusterctl plan` shows: nodes, price, deadline, warnings."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from clusterctl_bootstrap.render import USER_DATA_LIMIT_BYTES
from clusterctl_infra.plan.deadline import BLOCK_MARGIN
from clusterctl_infra.plan.model import ClusterPlan, DeadlinePlan, PricePlan, Problem, SlotPlan
from clusterctl_infra.plan.spot import SpotPrice
from clusterctl_infra.plan.storage_model import (
    BucketPlan,
    DisksPlan,
    EfsPlan,
    LustrePlan,
    StoragePlan,
)

from clusterctl.cost.after_deadline import bills_on_after
from clusterctl.engine.stack_plan import StackPlan, ends_line
from clusterctl.lifecycle.next_up import NextUp, next_up_rows
from clusterctl.text.headline import machine_words, machines_and_gpus, rehearsed
from clusterctl.text.quantities import clock, duration, thousands, usd
from clusterctl.text.table import render_table

STORAGE_KINDS: dict[type[StoragePlan], str] = {
    LustrePlan: "fsx-lustre",
    EfsPlan: "efs",
    BucketPlan: "s3",
    DisksPlan: "nvme",
}
KINDS = {"interface": "ENA", "efa": "EFA", "efa-only": "EFA-only"}


def plan_text(stack_plan: StackPlan, found: NextUp | None = None, *, now: datetime) -> str:
    """The whole screen; `found`: what the next `up` does to the cluster that is there."""
    plan = stack_plan.plan
    title = (
        f"{plan.name} · {place(plan)} · {_hardware(plan)}{rehearsed(stack_plan.is_rehearsal, plan.gpus_per_node > 0)}"
    )
    mounts = (" ".join(row.mount for row in plan.storage),) if plan.storage else ()
    rows = [
        (slot.name, slot.private_ip if plan.network.is_looked_up else "by up", interfaces(stack_plan), *mounts)
        for slot in plan.slots
    ]
    columns = ("node", "private ip", "interfaces", *(("mounts",) if plan.storage else ()))
    afterwards = bills_on_after(plan)
    facts = [
        ("per hour", price_line(plan)),
        *(() if plan.price.spot is None else [("spot", spot_line(plan, plan.price.spot))]),
        *([("capacity", capacity_line(plan))] if plan.capacity in ("reservation", "capacity-block") else []),
        ("deadline", deadline_line(stack_plan, now=now)),
        ("in all", total_line(stack_plan)),
        *(() if plan.price.reservation_tail_usd == 0 else [("at worst", tail_line(plan))]),
        *(() if afterwards is None else [("afterwards", afterwards)]),
        ("user-data", f"{thousands(plan.user_data_bytes)} of {thousands(USER_DATA_LIMIT_BYTES)} bytes"),
        *([("scripts", scripts_line(plan))] if plan.delivered_scripts else []),
    ]
    going = ends_line(stack_plan.ends, nodes=len(plan.slots), source=stack_plan.size_source)
    facts += [("linked", line) for line in linked_lines(plan)]
    facts += [] if going is None or found is not None else [("ends", going)]
    facts += [] if stack_plan.size_note is None else [("size", stack_plan.size_note)]
    facts += [("warning", _problem_text(problem)) for problem in plan.problems if problem.level == "warning"]
    lines = "\n".join(f"  {name:<12} {value}" for name, value in facts)
    screen = f"{title}\n\n{render_table(columns, rows)}\n\n{lines}"
    if found is None:
        return screen
    happens = "\n".join(f"  {name:<12} {value}" for name, value in next_up_rows(found, now=now))
    return f"{screen}\n\nclusterctl up would do this to the cluster that is there:\n{happens}"


def plan_json(stack_plan: StackPlan) -> dict[str, object]:
    """What `clusterctl plan --json` prints; sums in US dollars, unknown ones null."""
    plan = stack_plan.plan
    return {
        "name": plan.name,
        "cluster_id": plan.cluster_id if stack_plan.is_running else None,
        "rehearsal": stack_plan.is_rehearsal,
        "running": stack_plan.is_running,
        "region": plan.region,
        "zone": plan.chosen_zone,
        "instance_type": plan.instance_type,
        "capacity": plan.capacity,
        "gpus_per_node": plan.gpus_per_node,
        "gpu_name": plan.gpu_name,
        "reservation": plan.reservation_id,
        "nodes": [_node_json(slot, is_looked_up=plan.network.is_looked_up) for slot in plan.slots],
        "ends": list(stack_plan.ends),
        "size_note": stack_plan.size_note,
        "storage": [storage_json(row) for row in plan.storage],
        "price": _price_json(plan.price),
        "deadline": _deadline_json(plan.deadline),
        "estimated_cost": {"at_deadline_usd": stack_plan.at_deadline_usd},
        "user_data_bytes": plan.user_data_bytes,
        "delivered_scripts": list(plan.delivered_scripts),
        "problems": [{"level": row.level, "path": row.path, "message": row.message} for row in plan.problems],
    }


def scripts_line(plan: ClusterPlan) -> str:
    """`setup.sh: no room in user-data; clusterctl up sends it to each node over SSH`."""
    sent = "it" if len(plan.delivered_scripts) == 1 else "them"
    named = ", ".join(plan.delivered_scripts)
    return f"{named}: no room in user-data; clusterctl up sends {sent} to each node over SSH"


def linked_lines(plan: ClusterPlan) -> Iterator[str]:
    """`/shared/imagenet with s3://ml-datasets/imagenet/: imports new, changed; exports nothing` for each link."""
    for row in plan.storage:
        if isinstance(row, LustrePlan) and (link := row.repository) is not None:
            imports, exports = (", ".join(events).lower() or "nothing" for events in (link.imports, link.exports))
            folder = f"{row.mount}{link.path}".rstrip("/")
            yield f"{folder} with {link.address}: imports {imports}; exports {exports}"


def storage_json(storage: StoragePlan) -> dict[str, object]:
    """One mount: its kind, and what the plan says of its storage."""
    return {"kind": STORAGE_KINDS[type(storage)], **dataclasses.asdict(storage)}


def place(plan: ClusterPlan) -> str:
    """The zone, or the region when the zone is chosen at birth."""
    return plan.chosen_zone or plan.region


def interfaces(stack_plan: StackPlan) -> str:
    """`1 ENA + 32 EFA-only (3200 Gbit/s)`."""
    kinds = Counter(KINDS[kind] for _, _, kind in stack_plan.plan.interface_layout)
    cards = " + ".join(f"{number} {kind}" for kind, number in kinds.items())
    return f"{cards} ({stack_plan.instance_type.network_gbps:g} Gbit/s)"


def price_line(plan: ClusterPlan) -> str:
    """`4 × $55.04 + addresses $0.02 = $220.18   cap 4 × $60.00   (prices of 2026-11-01)`."""
    price, nodes = plan.price, len(plan.slots)
    parts = [f"{nodes} × {usd(price.node_usd_per_hour)}"]
    if price.disks_usd_per_hour is None or price.disks_usd_per_hour:
        parts.append(f"disks {usd(price.disks_usd_per_hour)}")
    if price.addresses_usd_per_hour:
        parts.append(f"addresses {usd(price.addresses_usd_per_hour)}")
    if price.gateway_usd_per_hour is None or price.gateway_usd_per_hour:
        parts.append(f"gateway {usd(price.gateway_usd_per_hour)}")
    if price.storage_usd_per_hour is None or price.storage_usd_per_hour:
        parts.append(f"storage {usd(price.storage_usd_per_hour)}")
    caps = [] if price.cap_node_usd_per_hour is None else [f"{nodes} × {usd(price.cap_node_usd_per_hour)}"]
    caps += [] if price.cap_total_usd_per_hour is None else [f"{usd(price.cap_total_usd_per_hour)} in all"]
    most = "" if price.spot is None else "at most "
    total = f"{most}{' + '.join(parts)} = {usd(price.total_usd_per_hour)}"
    return total + (f"   cap {', '.join(caps)}" if caps else "") + f"   (prices of {price.prices_dated})"


def spot_line(plan: ClusterPlan, spot: SpotPrice) -> str:
    """`at most $20.00 a node (caps.price_usd_per_hour); about $12.69 on 2026-01, in the cheapest zone; nothing …`."""
    why = "caps.price_usd_per_hour" if spot.is_capped else "the price on demand; caps.price_usd_per_hour lowers it"
    market = "the spot price is not known"
    if spot.list_usd_per_hour is not None:
        market = f"about {usd(spot.list_usd_per_hour)} on {plan.price.prices_dated}, in the cheapest zone"
    return f"at most {usd(spot.max_usd_per_hour)} a node ({why}); {market}; nothing is reserved"


def capacity_line(plan: ClusterPlan) -> str:
    """`capacity block cr-0a1b2c3d4e5f67890, paid in advance; lets the cluster live until 12:30 UTC`."""
    ends_at = plan.deadline.ceiling_at
    is_block = plan.capacity == "capacity-block"
    ends = f"at the latest {duration(BLOCK_MARGIN)} before it does" if is_block else "with it"
    until = f"the cluster ends {ends}"
    if ends_at is not None:
        until = f"lets the cluster live until {ends_at:%Y-%m-%d %H:%M} UTC"
    if plan.reservation_id is None:
        return f"a capacity block that up looks for, and buys once you agree to its price; {until}"
    if is_block:
        return f"capacity block {plan.reservation_id}, paid in advance; {until}"
    return f"reservation {plan.reservation_id}, which exists, and bills with or without nodes; {until}"


def total_line(stack_plan: StackPlan) -> str:
    """`about $2642.16 when it ends, over all runs`."""
    over = ", over all runs" if stack_plan.plan.run > 1 else ""
    about = "about" if stack_plan.plan.price.spot is None else "at most about"
    return f"{about} {usd(stack_plan.at_deadline_usd)} when it ends{over}"


def tail_line(plan: ClusterPlan) -> str:
    """`$220.16 more after it: AWS ends an empty reservation up to 1 h late; clusterctl down ends it at once`."""
    late = "AWS ends an empty reservation up to 1 h late"
    return f"{usd(plan.price.reservation_tail_usd)} more after it: {late}; clusterctl down ends it at once"


def deadline_line(stack_plan: StackPlan, *, now: datetime) -> str:
    """`24 h after launch`, or the earlier end by a budget; for a running cluster, `17:22 UTC (in 3 h: runtime)`."""
    deadline = stack_plan.plan.deadline
    began = stack_plan.plan.started_at
    if stack_plan.is_running:
        left = deadline.at - now
        when = f"in {duration(left)}" if left > timedelta(0) else f"{duration(left)} ago"
        return f"{clock(deadline.at, now)} ({when}: {deadline.reason})"
    runtime = f"{duration(deadline.runtime_at - began)} after launch"
    if deadline.budget_usd is None:
        return runtime
    if deadline.budget_at is None:
        return f"{runtime} ({usd(deadline.budget_usd)} lasts longer, or its end is not known)"
    spent = f"{usd(deadline.budget_usd)} spent after {duration(deadline.budget_at - began)}"
    return f"{runtime}, or {spent}: {duration(deadline.at - began)} wins"


def _node_json(slot: SlotPlan, *, is_looked_up: bool) -> dict[str, object]:
    return {
        "slot": slot.slot,
        "rank": slot.rank,
        "name": slot.name,
        "private_ip": slot.private_ip if is_looked_up else None,
        "interfaces": [
            {"network_card": row.network_card_index, "device": row.device_index, "kind": row.kind}
            for row in slot.interfaces
        ],
    }


def _price_json(price: PricePlan) -> dict[str, object]:
    return {
        "node_usd_per_hour": price.node_usd_per_hour,
        "nodes_usd_per_hour": price.nodes_usd_per_hour,
        "disks_usd_per_hour": price.disks_usd_per_hour,
        "gateway_usd_per_hour": price.gateway_usd_per_hour,
        "addresses_usd_per_hour": price.addresses_usd_per_hour,
        "storage_usd_per_hour": price.storage_usd_per_hour,
        "total_usd_per_hour": price.total_usd_per_hour,
        "cap_node_usd_per_hour": price.cap_node_usd_per_hour,
        "cap_total_usd_per_hour": price.cap_total_usd_per_hour,
        "reservation_tail_usd": price.reservation_tail_usd,
        "prices_dated": price.prices_dated,
        "spot": None if price.spot is None else dataclasses.asdict(price.spot),
    }


def _deadline_json(deadline: DeadlinePlan) -> dict[str, object]:
    return {
        "at": deadline.at.isoformat(),
        "reason": deadline.reason,
        "runtime_at": deadline.runtime_at.isoformat(),
        "budget_at": None if deadline.budget_at is None else deadline.budget_at.isoformat(),
        "ceiling_at": None if deadline.ceiling_at is None else deadline.ceiling_at.isoformat(),
        "budget_usd": deadline.budget_usd,
    }


def _problem_text(problem: Problem) -> str:
    return f"{problem.path}: {problem.message}" if problem.path else problem.message


def _hardware(plan: ClusterPlan) -> str:
    machine = machine_words(plan.instance_type, plan.capacity)
    return machines_and_gpus(len(plan.slots), machine, plan.gpus_per_node, plan.gpu_name)
