"""Asks every node all probes at once, over one connection each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any  # probes of any reading

from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.probes.probe import Probe
from clusterctl.probes.readings import NodeAnswer, Readings, readings_of
from clusterctl.probes.script import probe_script, read_script
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.many.fan_out import run_on_nodes
from clusterctl.ssh.results import NodeResult


def ask_nodes(
    inventory: Inventory,
    nodes: Sequence[InventoryNode],
    probes: Sequence[Probe[Any]],
    *,
    keys: LoginKeys,
    connect_timeout_s: float,
    timeout_s: float,
) -> tuple[NodeAnswer, ...]:
    """One answer per node, in the nodes' order; a node that is silent is a failure in it."""
    ended_at_s: dict[int, float] = {}

    def note_end(result: NodeResult) -> None:
        ended_at_s[result.slot] = time.time()

    results = run_on_nodes(
        inventory,
        nodes,
        probe_script(probes),
        keys=keys,
        deadlines=Deadlines.within(connect_timeout_s),
        timeout_s=timeout_s,
        on_result=note_end,
    )
    return tuple(_answer(node, results[node.slot], ended_at_s[node.slot], probes) for node in nodes)


def _answer(node: InventoryNode, result: NodeResult, ended_at_s: float, probes: Sequence[Probe[Any]]) -> NodeAnswer:
    is_known = bool(result.stdout)  # what came before the node was lost still counts
    readings = readings_of(read_script(result.stdout.decode(errors="replace"), probes)) if is_known else Readings()
    return NodeAnswer(
        node=node,
        readings=readings,
        failure=result.failure,
        asked_at_s=ended_at_s - result.duration_s,
        answered_at_s=ended_at_s,
    )
