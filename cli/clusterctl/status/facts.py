"""What AWS and the nodes say of a cluster, as far as they answered in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from clusterctl_infra.ledger import Ledger, StandingKind
from clusterctl_infra.outputs import Inventory

from clusterctl.cloud.alarms import Alarm
from clusterctl.cloud.early_end import EarlyEnd
from clusterctl.cloud.instances import InstanceState
from clusterctl.cloud.scheduled_events import ScheduledEvent
from clusterctl.cost.sighting import NOTHING_OBSERVED, Observed
from clusterctl.cost.sighting_file import read_observed
from clusterctl.home import Home
from clusterctl.ssh.failures import NodeFailure
from clusterctl.status.cloud_answers import (
    Asked,
    ask_alarms,
    ask_api,
    ask_events,
    ask_reserved,
    asked_early_end,
    asked_ways_out,
)
from clusterctl.status.cluster_clients import ClusterClients
from clusterctl.status.ledger import read_ledger
from clusterctl.status.node_answers import asked_nodes, nodes_with_ways
from clusterctl.status.node_report import NodeReport
from clusterctl.status.unfinished import HalfExtend, Unfinished, half_extend, size_note_here, unfinished


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that `status` judges by; nothing in it is a guess."""

    now: datetime
    """By AWS's clock if this computer's is known to be wrong, else by this computer's."""
    instances: tuple[InstanceState, ...] | None
    """None: the API did not answer, which says nothing about the machines."""
    cloud_trouble: str | None = None
    """Why the API did not answer."""
    wrong_by: timedelta | None = None
    """By how much this computer's clock is ahead of AWS's; None: by no more than is allowed, or not known."""
    is_reserved: bool | None = None
    """Whether places are held for machines; None: not known."""
    reserved_trouble: str | None = None
    """Why `is_reserved` is not known."""
    events: tuple[ScheduledEvent, ...] | None = None
    """What AWS plans for machines that run; None: not known."""
    events_trouble: str | None = None
    """Why `events` is not known although the instances are."""
    alarms: tuple[Alarm, ...] | None = None
    """The alarms in state ALARM; None: not asked, because the deadline has not come, or no answer."""
    answers: Mapping[int, NodeReport | NodeFailure] = field(default_factory=dict)
    """By slot; a slot that was not asked is not in it."""
    ssh_trouble: str | None = None
    """Why no node could be asked, such as a missing key."""
    ledger: Ledger | None = None
    observed: Observed = NOTHING_OBSERVED
    early_end: EarlyEnd | None = None
    """What ended the cluster before its deadline; looked for where no machine lives."""
    ways_out: frozenset[StandingKind] | None = None
    """Which of elastic IPs and the NAT gateway AWS still has; None: machines live, or it did not say."""
    half_extend: HalfExtend | None = None
    unfinished: Unfinished | None = None
    size_note: str | None = None
    """The line about a size that cluster.yaml does not give; None where it gives it."""


def gather(
    inventory: Inventory,
    *,
    home: Home,
    environ: Mapping[str, str],
    now: datetime,
    connect_timeout_s: float,
    ssh_dir: Path,
) -> Facts:
    """The facts about the cluster; never raises for what does not answer."""
    if inventory.is_hosts:
        return _of_hosts(inventory, home, now=now, connect_timeout_s=connect_timeout_s, ssh_dir=ssh_dir)
    clients, id = ClusterClients(inventory, home=home, environ=environ), inventory.cluster_id
    api = Asked(lambda: ask_api(clients.ready, id, home))
    plans = Asked(lambda: ask_events(clients.ready, api))
    held = Asked(lambda: ask_reserved(clients.ready, id, home))
    alarms = Asked(lambda: ask_alarms(clients.ready, id) if _is_over(inventory, now) else None)
    nodes = nodes_with_ways(inventory, api)
    answers, ssh_trouble = asked_nodes(inventory, nodes, home, ssh_dir=ssh_dir, connect_timeout_s=connect_timeout_s)
    instances, trouble = api.answer()
    events, events_trouble = plans.answer()
    wrong_by = clients.wrong_by
    now -= wrong_by or timedelta(0)
    is_reserved, reserved_trouble = held.answer()
    facts = Facts(
        now=now,
        wrong_by=wrong_by,
        instances=instances,
        cloud_trouble=trouble,
        is_reserved=is_reserved,
        reserved_trouble=reserved_trouble,
        events=events,
        events_trouble=events_trouble if instances is not None else None,
        alarms=alarms.answer()[0],
        answers=answers,
        ssh_trouble=ssh_trouble,
    )
    facts = _with_what_is_known_here(facts, inventory, home)
    gone = _unless_heard(instances, answers)
    return _with_ends(facts, gone, inventory, clients)


def _of_hosts(inventory: Inventory, home: Home, *, now: datetime, connect_timeout_s: float, ssh_dir: Path) -> Facts:
    """The facts about a cluster of hosts: only what its nodes say, since no cloud knows of them."""
    nodes = inventory.nodes
    answers, trouble = asked_nodes(inventory, nodes, home, ssh_dir=ssh_dir, connect_timeout_s=connect_timeout_s)
    return Facts(now=now, instances=None, answers=answers, ssh_trouble=trouble)


def _with_ends(
    facts: Facts, instances: tuple[InstanceState, ...] | None, inventory: Inventory, clients: ClusterClients
) -> Facts:
    """The facts with what ended the cluster, and which of its ways to the internet are left.

    AWS is asked for both only if no machine lives.
    """
    known = facts.ledger, facts.observed
    end = asked_early_end(clients, inventory, instances, *known, is_reserved=facts.is_reserved, now=facts.now)
    return replace(facts, early_end=end, ways_out=asked_ways_out(clients, inventory, instances))


def _is_over(inventory: Inventory, now: datetime) -> bool:
    """Whether the deadline has passed at `now`."""
    return datetime.fromisoformat(inventory.deadline) <= now


def _with_what_is_known_here(facts: Facts, inventory: Inventory, home: Home) -> Facts:
    ledger = read_ledger(home.ledger_file(inventory.cluster_id))
    return replace(
        facts,
        ledger=ledger,
        observed=read_observed(home, ledger, cluster_id=inventory.cluster_id, region=inventory.region),
        half_extend=half_extend(inventory, home),
        unfinished=unfinished(inventory.cluster, home),
        size_note=size_note_here(inventory, home),
    )


def _unless_heard(
    instances: tuple[InstanceState, ...] | None, answers: Mapping[int, NodeReport | NodeFailure]
) -> tuple[InstanceState, ...] | None:
    """The instances; None if a node answers.

    If AWS lists no machine although a node answers, we ask an account, or a rehearsed region, that did not make the
    cluster, and that knows nothing of its end.
    """
    return None if any(isinstance(answer, NodeReport) for answer in answers.values()) else instances
