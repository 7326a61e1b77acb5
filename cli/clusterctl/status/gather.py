"""Asks AWS and the nodes at the same time; whoever is silent is waited for no longer than this."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from clusterctl_infra.outputs import Inventory

from clusterctl.cost.sighting_file import read_observed
from clusterctl.home import Home
from clusterctl.status.account import read_account
from clusterctl.status.cloud_answers import Asked, ask_alarms, ask_api, ask_reserved, asked_early_end
from clusterctl.status.facts import Facts
from clusterctl.status.half_extend import half_extend
from clusterctl.status.node_answers import asked_nodes, nodes_with_ways
from clusterctl.status.unfinished import unfinished


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
    api = Asked(lambda: ask_api(inventory, home, environ))
    held = Asked(lambda: ask_reserved(inventory, home, environ))
    is_over = datetime.fromisoformat(inventory.deadline) <= now
    watch = Asked(lambda: ask_alarms(inventory, home, environ)) if is_over else None
    nodes = nodes_with_ways(inventory, api)
    answers, ssh_trouble = asked_nodes(inventory, nodes, home, ssh_dir=ssh_dir, connect_timeout_s=connect_timeout_s)
    instances, trouble = api.answer()
    alarms = None if watch is None else watch.answer()[0]
    account = read_account(home.ledger_file(inventory.cluster_id))
    is_reserved, reserved_trouble = held.answer()
    observed = read_observed(home, account, cluster_id=inventory.cluster_id, region=inventory.region)
    return Facts(
        now=now,
        instances=instances,
        cloud_trouble=trouble,
        is_reserved=is_reserved,
        reserved_trouble=reserved_trouble,
        alarms=alarms,
        answers=answers,
        ssh_trouble=ssh_trouble,
        account=account,
        observed=observed,
        early_end=asked_early_end(
            inventory, instances, account, observed, is_reserved=is_reserved, home=home, environ=environ, now=now
        ),
        half_extend=half_extend(inventory, home),
        unfinished=unfinished(inventory.cluster, home),
    )
