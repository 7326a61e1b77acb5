"""Asks AWS and the nodes at the same time; whoever is silent is waited for no longer than this."""

from __future__ import annotations

import dataclasses
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.ledger import Ledger
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.cloud.alarms import Alarm, alarms_on
from clusterctl.cloud.clients import Clients
from clusterctl.cloud.early_end import EarlyEnd, early_end
from clusterctl.cloud.instances import InstanceState
from clusterctl.cloud.other_account import refuse_account
from clusterctl.cloud.spot_history import SpotPriceChange, spot_history
from clusterctl.cost.look import look_at_instances, look_at_reservations
from clusterctl.cost.reconcile import all_gone_at
from clusterctl.cost.sighting import Observed
from clusterctl.cost.sighting_file import read_observed
from clusterctl.engine.region import ensure_region
from clusterctl.home import Home
from clusterctl.readiness.node_report import NodeReport, parse_report
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.keys.login_keys import LoginKeys, load_login_keys
from clusterctl.ssh.many.fan_out import run_on_nodes
from clusterctl.ssh.results import NodeResult
from clusterctl.ssh.target import names_machine
from clusterctl.ssh.way_in import uses_session_manager
from clusterctl.status.account import read_account
from clusterctl.status.facts import Facts
from clusterctl.status.half_extend import half_extend
from clusterctl.status.unfinished import unfinished

ASK = "clusterctl-node status"
ASK_S = 5.0
API_CALL_S = 3.0
API_S = 8.0
"""All tries of the API together."""
DIRECTLY_S, BY_SESSION_MANAGER_S = 5.0, 20.0
"""Until a healthy node is logged in to, at most: a session alone takes Session Manager some seconds."""
USUAL_WAITS = f"{DIRECTLY_S:.0f}s, by Session Manager {BY_SESSION_MANAGER_S:.0f}s"

Instances = tuple[InstanceState, ...]
T = TypeVar("T")


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
    api = _Asked(lambda: ask_api(inventory, home, environ))
    held = _Asked(lambda: ask_reserved(inventory, home, environ))
    is_over = datetime.fromisoformat(inventory.deadline) <= now
    watch = _Asked(lambda: ask_alarms(inventory, home, environ)) if is_over else None
    nodes = _nodes_with_ways(inventory, api)
    answers, ssh_trouble = _asked_nodes(inventory, nodes, home, ssh_dir=ssh_dir, connect_timeout_s=connect_timeout_s)
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


def _nodes_with_ways(inventory: Inventory, api: _Asked[Instances]) -> tuple[InventoryNode, ...]:
    """The nodes; of a half-made cluster only AWS knows where they are, and its answer is waited for."""
    if not any(_lacks_its_way(inventory, node) for node in inventory.nodes):
        return inventory.nodes
    instances, _ = api.answer()
    return tuple(with_machine(node, instances) for node in inventory.nodes)


def _asked_nodes(
    inventory: Inventory, nodes: tuple[InventoryNode, ...], home: Home, *, ssh_dir: Path, connect_timeout_s: float
) -> tuple[Mapping[int, NodeReport | NodeFailure], str | None]:
    """What the nodes say, or why none could be asked."""
    try:
        keys = load_login_keys(inventory, home, ssh_dir=ssh_dir)
        return ask_nodes(inventory, nodes, keys, connect_timeout_s=connect_timeout_s), None
    except NodeFailure as failure:
        return {}, failure.message


def usual_wait_s(inventory: Inventory) -> float:
    """How long a healthy node takes at most until it is logged in to."""
    return BY_SESSION_MANAGER_S if uses_session_manager(inventory.ssh.proxy_command) else DIRECTLY_S


def asked_instances(
    inventory: Inventory, *, home: Home, environ: Mapping[str, str], timeout_s: float = API_S
) -> tuple[Instances | None, str | None]:
    """The cluster's instances, or None and why."""
    return _Asked(lambda: ask_api(inventory, home, environ), timeout_s=timeout_s).answer()


def asked_early_end(
    inventory: Inventory,
    instances: Instances | None,
    account: Ledger | None,
    observed: Observed,
    *,
    is_reserved: bool | None,
    home: Home,
    environ: Mapping[str, str],
    now: datetime,
) -> EarlyEnd | None:
    """What ended the cluster before its deadline; None where machines live, and where AWS does not say."""
    is_gone = instances is not None and not any(row.is_alive for row in instances)
    if not is_gone or not inventory.nodes:
        return None
    # An end of machines before these is not theirs.
    starts = [row.launched_at for row in instances or () if row.launched_at is not None]
    starts += [span.started_at for span in account.spans] if account is not None else []
    after = max([datetime.fromisoformat(inventory.started_at), *starts])
    deadline = datetime.fromisoformat(inventory.deadline)
    gone_at = all_gone_at(observed, is_reserved=is_reserved, deadline=deadline, now=now)

    def ask() -> EarlyEnd | None:
        clients = _clients(inventory, home, environ)
        return early_end(clients, inventory.cluster_id, after=after, gone_at=gone_at, now=now)

    return _Asked(ask).answer()[0]


def asked_reserved(
    inventory: Inventory, *, home: Home, environ: Mapping[str, str], timeout_s: float = API_S
) -> tuple[bool | None, str | None]:
    """Whether AWS holds places for the cluster's machines, or None and why."""
    return _Asked(lambda: ask_reserved(inventory, home, environ), timeout_s=timeout_s).answer()


def asked_spot_prices(
    inventory: Inventory, *, home: Home, environ: Mapping[str, str], now: datetime
) -> tuple[tuple[SpotPriceChange, ...] | None, str | None]:
    """What spot machines like the cluster's have cost in its zone since its run began, or None and why."""

    def ask() -> tuple[SpotPriceChange, ...]:
        clients, since = _clients(inventory, home, environ), datetime.fromisoformat(inventory.started_at)
        return spot_history(clients, instance_type=inventory.instance_type, zone=inventory.zone, since=since, until=now)

    return _Asked(ask).answer()


def ask_api(inventory: Inventory, home: Home, environ: Mapping[str, str]) -> Instances:
    """The cluster's instances; what is new about them is written down. Raises ClusterctlError."""
    id = inventory.cluster_id
    return look_at_instances(_clients(inventory, home, environ), home.observed_file(id), id)


def ask_reserved(inventory: Inventory, home: Home, environ: Mapping[str, str]) -> bool:
    """Whether places are held for machines; what is new about them is written down. Raises ClusterctlError."""
    id = inventory.cluster_id
    found = look_at_reservations(_clients(inventory, home, environ), home.observed_file(id), id)
    return any(one.is_held for one in found)


def ask_alarms(inventory: Inventory, home: Home, environ: Mapping[str, str]) -> tuple[Alarm, ...]:
    """The cluster's alarms that are on. Raises ClusterctlError."""
    return alarms_on(_clients(inventory, home, environ), inventory.cluster_id)


def _clients(inventory: Inventory, home: Home, environ: Mapping[str, str]) -> Clients:
    """Raises CloudError where the credentials are another account's, in which nothing of the cluster would be found."""
    endpoint = rehearsal_endpoint(home, environ) if inventory.rehearsal else None
    clients = Clients(region=inventory.region, endpoint_url=endpoint, timeout_s=API_CALL_S)
    if not inventory.rehearsal and inventory.account_id is not None:
        refuse_account(inventory.account_id, clients.account())
    return clients


def rehearsal_endpoint(home: Home, environ: Mapping[str, str]) -> str:
    """Where the rehearsed region listens; its server is started when it does not run. Raises RehearsalError."""
    try:
        endpoint = str(json.loads((home.rehearsal_dir / "region.json").read_text(encoding="utf-8"))["endpoint"])
        place = urlsplit(endpoint)
        with socket.create_connection((place.hostname or "", place.port or 80), timeout=1):
            return endpoint
    except (OSError, ValueError, KeyError, TypeError):
        return ensure_region(home, environ)


def ask_nodes(
    inventory: Inventory, nodes: tuple[InventoryNode, ...], keys: LoginKeys, *, connect_timeout_s: float
) -> Mapping[int, NodeReport | NodeFailure]:
    """What each node says of itself, or why it said nothing."""
    results = run_on_nodes(
        inventory,
        nodes,
        ASK,
        keys=keys,
        deadlines=Deadlines.within(connect_timeout_s),
        timeout_s=ASK_S,
        fan_out=max(1, len(nodes)),
    )
    return {slot: answer_of(result) for slot, result in results.items()}


def answer_of(result: NodeResult) -> NodeReport | NodeFailure:
    """The report in what the node printed; a node without an agent (yet) is a failure that says so."""
    if result.failure is not None:
        return result.failure
    report = parse_report(result.stdout.decode(errors="replace"))
    if report is not None:
        return report
    said = result.stderr.decode(errors="replace").strip().splitlines()
    told = said[-1] if said else f"exit {result.exit_code}"
    return NodeFailure("protocol", f"{result.name}: no status from the node's agent ({told})", phase="command")


def with_machine(node: InventoryNode, instances: Instances | None) -> InventoryNode:
    """The node with the machine and the public address that AWS knows, where the inventory has none."""
    for row in instances or ():
        if row.slot == node.slot and row.is_alive:
            return dataclasses.replace(
                node,
                instance_id=node.instance_id or row.instance_id,
                public_ip=node.public_ip or row.public_ip,
            )
    return node


def _lacks_its_way(inventory: Inventory, node: InventoryNode) -> bool:
    address = node.public_ip if inventory.ssh.address == "public" else node.private_ip
    return address is None or (node.instance_id is None and names_machine(inventory.ssh.proxy_command))


class _Asked(Generic[T]):
    """A question that is being asked by a thread of its own."""

    def __init__(self, ask: Callable[[], T], *, timeout_s: float = API_S) -> None:
        self._ask = ask
        self._timeout_s = timeout_s
        self._said: queue.SimpleQueue[tuple[T | None, str | None]] = queue.SimpleQueue()
        self._known: tuple[T | None, str | None] | None = None
        self._give_up = time.monotonic() + timeout_s
        threading.Thread(target=self._work, daemon=True, name="ask AWS").start()

    def answer(self) -> tuple[T | None, str | None]:
        """The answer, or None and why; waits no longer than its time since it was asked."""
        if self._known is None:
            try:
                self._known = self._said.get(timeout=max(0.0, self._give_up - time.monotonic()))
            except queue.Empty:
                self._known = None, f"no answer in {self._timeout_s:g} s"
        return self._known

    def _work(self) -> None:
        try:
            self._said.put((self._ask(), None))
        except ClusterctlError as e:
            self._said.put((None, e.message))
        except Exception as e:  # noqa: BLE001 a thread must not take its answer with it: the person is told
            self._said.put((None, f"{type(e).__name__}: {e}"))
