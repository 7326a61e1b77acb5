"""What AWS, or the rehearsed region, says of a cluster; or why that is not known, if it is silent or refuses."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Generic, TypeVar

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.ledger import Ledger, StandingKind
from clusterctl_infra.outputs import Inventory

from clusterctl.cloud.alarms import Alarm, alarms_on
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.clients import AwsClients, refuse_account
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
from clusterctl.engine.region import region_access
from clusterctl.home import Home

API_CALL_S = 3.0
API_S = 8.0
"""All tries of the API together."""

Instances = tuple[InstanceState, ...]
T = TypeVar("T")


class Asked(Generic[T]):
    """A question that is being asked by a thread of its own."""

    def __init__(self, ask: Callable[[], T], *, timeout_s: float = API_S) -> None:
        self._ask = ask
        self._timeout_s = timeout_s
        self._said: queue.SimpleQueue[tuple[T | None, str | None]] = queue.SimpleQueue()
        self._known: tuple[T | None, str | None] | None = None
        self._give_up = time.monotonic() + timeout_s
        self._reading = threading.Lock()
        threading.Thread(target=self._work, daemon=True, name="ask AWS").start()

    def answer(self) -> tuple[T | None, str | None]:
        """The answer, or None and why; waits until `timeout_s` after the question was asked at most."""
        with self._reading:
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


def asked_instances(
    inventory: Inventory, *, home: Home, environ: Mapping[str, str], timeout_s: float = API_S
) -> tuple[Instances | None, str | None]:
    """The cluster's instances, or None and why."""
    return Asked(lambda: ask_api(inventory, home, environ), timeout_s=timeout_s).answer()


def asked_early_end(
    inventory: Inventory,
    instances: Instances | None,
    ledger: Ledger | None,
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
    # An end that was begun before these machines started is not theirs.
    starts = [row.launched_at for row in instances or () if row.launched_at is not None]
    starts += [span.started_at for span in ledger.spans] if ledger is not None else []
    after = max([datetime.fromisoformat(inventory.started_at), *starts])
    deadline = datetime.fromisoformat(inventory.deadline)
    gone_at = all_gone_at(observed, is_reserved=is_reserved, deadline=deadline, now=now)

    def ask() -> EarlyEnd | None:
        clients = _clients(inventory, home, environ)
        return early_end(clients, inventory.cluster_id, after=after, gone_at=gone_at, now=now)

    return Asked(ask).answer()[0]


def asked_ways_out(
    inventory: Inventory, instances: Instances | None, *, home: Home, environ: Mapping[str, str]
) -> frozenset[StandingKind] | None:
    """Which of elastic IPs and the NAT gateway AWS still has; None where machines live, or it does not say."""
    if instances is None or any(row.is_alive for row in instances) or not inventory.nodes:
        return None

    def ask() -> frozenset[StandingKind]:
        kinds = tuple(kind for kind in KINDS if kind.name in WAYS_OUT)
        found = look(_clients(inventory, home, environ), inventory.cluster_id, kinds)
        return frozenset(WAYS_OUT[thing.kind] for thing in found)

    return Asked(ask).answer()[0]


def asked_reserved(
    inventory: Inventory, *, home: Home, environ: Mapping[str, str], timeout_s: float = API_S
) -> tuple[bool | None, str | None]:
    """Whether AWS holds places for the cluster's machines, or None and why."""
    return Asked(lambda: ask_reserved(inventory, home, environ), timeout_s=timeout_s).answer()


def asked_spot_prices(
    inventory: Inventory, *, home: Home, environ: Mapping[str, str], since: datetime, now: datetime
) -> tuple[tuple[SpotPriceChange, ...] | None, str | None]:
    """What spot machines like the cluster's have cost in its zone, or None and why."""

    def ask() -> tuple[SpotPriceChange, ...]:
        clients = _clients(inventory, home, environ)
        return spot_history(clients, instance_type=inventory.instance_type, zone=inventory.zone, since=since, until=now)

    return Asked(ask).answer()


def ask_api(
    inventory: Inventory,
    home: Home,
    environ: Mapping[str, str],
    *,
    note_clients: Callable[[AwsClients], None] = lambda clients: None,
) -> Instances:
    """The cluster's instances; what is new about them is written down. Raises ClusterctlError.

    `note_clients` is called with the clients before they ask: they learn AWS's clock, even if AWS refuses the question
    because ours is wrong.
    """
    id, clients = inventory.cluster_id, _new_clients(inventory, home, environ)
    note_clients(clients)
    _refuse_other_account(inventory, clients)
    return look_at_instances(clients, home.observed_file(id), id)


def ask_events(api: Asked[Instances], clients: Sequence[Clients]) -> tuple[ScheduledEvent, ...] | None:
    """What AWS plans for the machines that run, asked by the first of the clients; None: `api` has no answer.

    Raises ClusterctlError.
    """
    instances, _ = api.answer()
    if instances is None:
        return None
    ids = [row.instance_id for row in instances if row.state == "running"]
    return scheduled_events_of(clients[0], ids) if ids else ()


def ask_reserved(inventory: Inventory, home: Home, environ: Mapping[str, str]) -> bool:
    """Whether places are held for machines; what is new about them is written down. Raises ClusterctlError."""
    id = inventory.cluster_id
    found = look_at_reservations(_clients(inventory, home, environ), home.observed_file(id), id)
    return any(reservation.is_held for reservation in found)


def ask_alarms(inventory: Inventory, home: Home, environ: Mapping[str, str]) -> tuple[Alarm, ...]:
    """The cluster's alarms in state ALARM. Raises ClusterctlError."""
    return alarms_on(_clients(inventory, home, environ), inventory.cluster_id)


def _clients(inventory: Inventory, home: Home, environ: Mapping[str, str]) -> Clients:
    """The clients to ask with. Raises CloudError if the credentials are another account's, in which nothing of the
    cluster would be found.
    """
    clients = _new_clients(inventory, home, environ)
    _refuse_other_account(inventory, clients)
    return clients


def _new_clients(inventory: Inventory, home: Home, environ: Mapping[str, str]) -> AwsClients:
    rehearsed = region_access(home, environ) if inventory.rehearsal else None
    return AwsClients.at(rehearsed, region=inventory.region, timeout_s=API_CALL_S)


def _refuse_other_account(inventory: Inventory, clients: Clients) -> None:
    if not inventory.rehearsal and inventory.account_id is not None:
        refuse_account(inventory.account_id, clients.account())
