"""What AWS, or the rehearsed region, says of a cluster; or why that is not known, if it is silent or refuses."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.ledger import Ledger, StandingKind
from clusterctl_infra.outputs import Inventory

from clusterctl.cloud.alarms import Alarm, alarms_on
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.early_end import EarlyEnd, early_end
from clusterctl.cloud.instances import InstanceState
from clusterctl.cloud.look import look
from clusterctl.cloud.resource_types import KINDS
from clusterctl.cloud.scheduled_events import ScheduledEvent, scheduled_events_of
from clusterctl.cloud.spot_history import SpotPriceChange, spot_history
from clusterctl.cost.reconcile import all_gone_at
from clusterctl.cost.sighting import Observed
from clusterctl.cost.sighting_file import look_at_instances, look_at_reservations
from clusterctl.cost.standing_rows import WAYS_OUT
from clusterctl.home import Home
from clusterctl.status.cluster_clients import ClusterClients

API_S = 8.0
"""All tries of the API together."""

Instances = tuple[InstanceState, ...]
T = TypeVar("T")


class Asked(Generic[T]):
    """A question that is asked in its own thread."""

    def __init__(self, ask: Callable[[], T], *, timeout_s: float = API_S) -> None:
        self._ask = ask
        self._timeout_s = timeout_s
        self._answers: queue.SimpleQueue[tuple[T | None, str | None]] = queue.SimpleQueue()
        self._known: tuple[T | None, str | None] | None = None
        self._give_up = time.monotonic() + timeout_s
        self._reading = threading.Lock()
        threading.Thread(target=self._work, daemon=True, name="ask AWS").start()

    def answer(self) -> tuple[T | None, str | None]:
        """The answer, or None and why; waits no longer than `timeout_s` after the question was asked."""
        with self._reading:
            if self._known is None:
                try:
                    self._known = self._answers.get(timeout=max(0.0, self._give_up - time.monotonic()))
                except queue.Empty:
                    self._known = None, f"no answer in {self._timeout_s:g} s"
            return self._known

    def _work(self) -> None:
        try:
            self._answers.put((self._ask(), None))
        except ClusterctlError as e:
            self._answers.put((None, e.message))
        except Exception as e:  # noqa: BLE001 else a thread would die without an answer: the person is told
            self._answers.put((None, f"{type(e).__name__}: {e}"))


def asked_instances(
    clients: ClusterClients, cluster_id: str, *, home: Home, timeout_s: float = API_S
) -> tuple[Instances | None, str | None]:
    """The cluster's instances, or None and why."""
    return Asked(lambda: ask_api(clients.ready, cluster_id, home), timeout_s=timeout_s).answer()


def asked_early_end(
    clients: ClusterClients,
    inventory: Inventory,
    instances: Instances | None,
    ledger: Ledger | None,
    observed: Observed,
    *,
    is_reserved: bool | None,
    now: datetime,
) -> EarlyEnd | None:
    """What ended the cluster before its deadline; None where machines live, and where AWS does not say."""
    is_gone = instances is not None and not any(row.is_alive for row in instances)
    if not is_gone or not inventory.nodes:
        return None
    # An end that was begun before these machines started is not theirs.
    starts = [row.launched_at for row in instances or () if row.launched_at is not None]
    starts += [span.started_at for span in ledger.spans] if ledger is not None else []
    after = max([datetime.fromisoformat(inventory.started_at), *starts])
    deadline = datetime.fromisoformat(inventory.deadline)
    gone_at = all_gone_at(observed, is_reserved=is_reserved, deadline=deadline, now=now)

    def ask() -> EarlyEnd | None:
        return early_end(clients.ready(), inventory.cluster_id, after=after, gone_at=gone_at, now=now)

    return Asked(ask).answer()[0]


def asked_ways_out(
    clients: ClusterClients, inventory: Inventory, instances: Instances | None
) -> frozenset[StandingKind] | None:
    """Which of elastic IPs and the NAT gateway AWS still has; None where machines live, or it does not say."""
    if instances is None or any(row.is_alive for row in instances) or not inventory.nodes:
        return None

    def ask() -> frozenset[StandingKind]:
        kinds = tuple(kind for kind in KINDS if kind.name in WAYS_OUT)
        found = look(clients.ready(), inventory.cluster_id, kinds)
        return frozenset(WAYS_OUT[thing.kind] for thing in found)

    return Asked(ask).answer()[0]


def asked_reserved(
    clients: ClusterClients, cluster_id: str, *, home: Home, timeout_s: float = API_S
) -> tuple[bool | None, str | None]:
    """Whether AWS holds places for the cluster's machines, or None and why."""
    return Asked(lambda: ask_reserved(clients.ready, cluster_id, home), timeout_s=timeout_s).answer()


def asked_spot_prices(
    clients: ClusterClients, inventory: Inventory, *, since: datetime, now: datetime
) -> tuple[tuple[SpotPriceChange, ...] | None, str | None]:
    """What spot machines like the cluster's have cost in its zone, or None and why."""

    def ask() -> tuple[SpotPriceChange, ...]:
        type, zone = inventory.instance_type, inventory.zone
        return spot_history(clients.ready(), instance_type=type, zone=zone, since=since, until=now)

    return Asked(ask).answer()


def ask_api(ready: Callable[[], Clients], cluster_id: str, home: Home) -> Instances:
    """The cluster's instances; what is new about them is written down. Raises ClusterctlError."""
    return look_at_instances(ready(), home.observed_file(cluster_id), cluster_id)


def ask_events(ready: Callable[[], Clients], api: Asked[Instances]) -> tuple[ScheduledEvent, ...] | None:
    """What AWS plans for the machines that run; None: `api` has no answer. Raises ClusterctlError."""
    instances, _ = api.answer()
    if instances is None:
        return None
    ids = [row.instance_id for row in instances if row.state == "running"]
    return scheduled_events_of(ready(), ids) if ids else ()


def ask_reserved(ready: Callable[[], Clients], cluster_id: str, home: Home) -> bool:
    """Whether places are held for machines; what is new about them is written down. Raises ClusterctlError."""
    found = look_at_reservations(ready(), home.observed_file(cluster_id), cluster_id)
    return any(reservation.is_held for reservation in found)


def ask_alarms(ready: Callable[[], Clients], cluster_id: str) -> tuple[Alarm, ...]:
    """The cluster's alarms in state ALARM. Raises ClusterctlError."""
    return alarms_on(ready(), cluster_id)
