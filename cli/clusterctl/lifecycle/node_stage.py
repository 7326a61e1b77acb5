"""The nodes' part of an `up`: watched from the moment each exists, given the membership, judged at the end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from clusterctl_bootstrap.mount_clients import LIMIT_S as CLIENTS_LIMIT_S
from clusterctl_infra.config.hooks import LIMIT_S, hooks_before_ready
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.errors import CloudError, SomeNodesFailed
from clusterctl_infra.outputs import Inventory, read_inventory
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cloud.instances import InstanceState, instances_of
from clusterctl.engine.events import Event
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.display import Display
from clusterctl.lifecycle.failed_nodes import REPLACE_FAILED
from clusterctl.lifecycle.membership import Delivery, deliver, membership_of
from clusterctl.lifecycle.newer_membership import go_above, implausible, newer_membership
from clusterctl.lifecycle.readiness import SCRIPT_PHASES, NodeWatch, Patience, ReadyWatch, Watches, why_not_ready
from clusterctl.lifecycle.script_delivery import AWAITING, script_texts
from clusterctl.lifecycle.stopped import noting_what_exists
from clusterctl.status.node_report import FAILED, READY
from clusterctl.text.next_commands import replace_again, up_again
from clusterctl.text.node_set import fold_names
from clusterctl.text.quantities import clock, count

REHEARSAL_READY_S = 120.0
AWS_READY_S = 600.0
REHEARSAL_PHASE_S = 60.0
AWS_PHASE_S = 120.0
"""After the usual time, a node is still waited for if it entered its present phase less than this long ago."""


EVERY_S = 10.0
"""How often the names of missing nodes are printed, if no live line shows them."""


def patience_of(config: ClusterConfig, *, is_rehearsal: bool) -> Patience:
    """How long nodes may take: their boot, and each hook before they are ready up to the hook's own limit."""
    hooks = hooks_before_ready(config.packages, config.scripts)
    return Patience(
        usual_s=REHEARSAL_READY_S if is_rehearsal else AWS_READY_S,
        phase_s=REHEARSAL_PHASE_S if is_rehearsal else AWS_PHASE_S,
        hooks_s=LIMIT_S * hooks + (CLIENTS_LIMIT_S if any(row.nvme is None for row in config.storage) else 0),
    )


def what_helps(bad: Sequence[NodeWatch], inventory: Inventory) -> str:
    """The command that helps with nodes that are not ready.

    Machines that are gone are made by the next `up`; a node whose boot failed stays as it is until it is replaced; the
    others may still become ready.
    """
    scripts = [watch.report.failed_phase for watch in bad if watch.report is not None and watch.gone is None]
    failed = {watch.slot: watch.name for watch in bad if watch.phase == FAILED and watch.gone is None}
    if any(watch.gone is not None or watch.phase == AWAITING for watch in bad):
        return up_again(inventory)
    if any(phase in (*SCRIPT_PHASES, AWAITING) for phase in scripts):
        again = f"{up_again(inventory)} {REPLACE_FAILED}"
        return f"{again}  (replaces these nodes, which run the script again; a script that you change needs no flag)"
    return replace_again(inventory.cluster, failed) if failed else f"clusterctl status --cluster {inventory.cluster}"


class NodeStage:
    """Watches nodes while the engine still works on others."""

    def __init__(
        self,
        change: Change,
        config: ClusterConfig,
        cluster_plan: ClusterPlan,
        display: Display,
        *,
        waits: bool,
        gone: Collection[str] = (),
        slots: frozenset[int] | None = None,
        watches: Watches | None = None,
        deliver: Delivery = deliver,
    ) -> None:
        """`gone`: instances that are being replaced; what they still report does not count.

        `slots`: whose nodes are waited for; None: all. `watches`: how they are watched; None: by SSH.
        """
        self._change = change
        self._config = config
        self._plan = cluster_plan
        self._display = display
        self._waits = waits
        self._gone = gone
        self._slots = slots
        self._deliver = deliver
        self._watch: Watches = watches or ReadyWatch(
            change.home.inventory_file(change.cluster),
            changed=display.node,
            scripts=script_texts(config.scripts) if config.scripts else None,
        )

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """While entered, nodes may be watched; at its end, all connections end, whatever happened."""
        try:
            yield
        finally:
            self._watch.stop()

    def event(self, event: Event) -> None:
        """Begins to watch each node that the engine has made."""
        if self._waits:
            for slot, instance_id in self._display.progress.instances.items():
                if instance_id not in self._gone:
                    self._watch.start(slot, f"{self._config.name}-{slot}")

    def stop(self) -> None:
        """Ends the watching, where the engine failed and no node is waited for."""
        self._watch.stop()

    def finish(self, *, timeout_s: float | None) -> None:
        """Returns when all nodes are ready.

        `timeout_s`: how long they are waited for; None: as long as they usually take at most, and longer while they
        make progress.

        Raises SomeNodesFailed after saying what is wrong with each.
        """
        inventory = read_inventory(self._change.home.inventory_file(self._change.cluster))
        if not self._waits:
            self._change.output.note(" no machines are booted (machines: none), so no node is waited for")
            self._end_line(inventory, len(inventory.nodes), "made")
            return
        began = time.monotonic()
        watches = self._waited(inventory, self._patience(timeout_s))
        inventory, watches = self._above_newer(inventory, watches)
        not_ready = [watch for watch in watches if not watch.is_ready]
        bad = [watch for watch in not_ready if self._slots is None or watch.slot in self._slots]
        self._tell(bad)
        self._tell_not_waited_for([watch for watch in not_ready if watch not in bad], inventory)
        self._end_line(inventory, len(watches) - len(not_ready), "ready")
        if bad:
            raise _error(bad, inventory, waited_s=time.monotonic() - began)

    def _patience(self, timeout_s: float | None) -> Patience:
        if timeout_s is not None:
            return Patience(usual_s=timeout_s)
        return patience_of(self._config, is_rehearsal=self._change.is_rehearsal)

    def _waited(self, inventory: Inventory, patience: Patience) -> Sequence[NodeWatch]:
        """What was seen of each node once all are ready or failed, or the time is over; each gets the membership."""
        for node in inventory.nodes:
            self._watch.start(node.slot, node.name)
        self._watch.settle(membership_of(inventory, self._config, slot_cidr=self._plan.network.slot_cidr))
        lost = LostMachines(self._change, inventory, self._watch)

        def on_tick() -> None:
            self._display.waiting(self._watch.waiting(self._slots), every_s=EVERY_S)
            lost.look()

        try:
            self._watch.wait(patience, on_tick=on_tick, slots=self._slots)
            lost.look_now()
            return self._watch.now()
        except KeyboardInterrupt:
            self._change.output.note(
                f"stopped waiting; the cluster exists, runs on and bills ({count(len(inventory.nodes), 'node')}).\n"
                f"  next: clusterctl status --cluster {inventory.cluster}\n"
                f"        clusterctl down --cluster {inventory.cluster}  ends them"
            )
            raise

    def _above_newer(self, inventory: Inventory, watches: Sequence[NodeWatch]) -> tuple[Inventory, Sequence[NodeWatch]]:
        """If nodes have a newer membership than the state, gives all a newer one still; once, whatever they answer."""
        known = inventory.generation
        for watch in watches:
            if (why := implausible(watch, known=known)) is not None:
                self._watch.note(replace(watch, undelivered=why))
        newer = newer_membership(watches, known=known)
        if newer is None:
            return inventory, self._watch.now()
        self._change.output.note(f" {newer.message}")
        shown = self._change.typed(self._change.stack.directory)
        heard = {watch.slot: watch for watch in watches if watch.phase == READY and watch.gone is None}
        with noting_what_exists(self._change, shown=shown):
            inventory = go_above(self._change, newer, shown=shown)
            content = membership_of(inventory, self._config, slot_cidr=self._plan.network.slot_cidr)
            living = [node for node in inventory.nodes if node.slot in heard]
            untaken = self._deliver(inventory, living, content, self._config.scripts, home=self._change.home)
        for slot, watch in heard.items():
            why = implausible(watch, known=known) or untaken.get(slot)
            self._watch.note(replace(watch, undelivered=why, is_final=True))
        return inventory, self._watch.now()

    def _tell(self, bad: Sequence[NodeWatch]) -> None:
        now = datetime.now(UTC)
        for watch in bad:
            for line in why_not_ready(watch, now=now):
                self._change.output.note(f" {line}")

    def _tell_not_waited_for(self, others: Sequence[NodeWatch], inventory: Inventory) -> None:
        """Names the nodes that were not waited for, and did not take the membership in the meantime."""
        if others:
            named = fold_names(watch.name for watch in others)
            what = "not waited for, and not yet told about the current list of nodes"
            self._change.output.note(f" {named}: {what}; next: {up_again(inventory)}")

    def _end_line(self, inventory: Inventory, good: int, word: str) -> None:
        deadline = datetime.fromisoformat(inventory.deadline)
        self._change.output.note(
            f"{inventory.name} · {good}/{len(inventory.nodes)} {word} · ends {clock(deadline, datetime.now(UTC))}"
            f" · generation {inventory.generation}"
        )


def _error(bad: Sequence[NodeWatch], inventory: Inventory, *, waited_s: float) -> SomeNodesFailed:
    nodes, named = f"{count(len(bad), 'node')} of {len(inventory.nodes)}", ", ".join(watch.name for watch in bad)
    is_late = any(not watch.is_final for watch in bad)
    what = f"not ready after {waited_s:.0f} s or failed" if is_late else "failed"
    return SomeNodesFailed(f"{nodes} {what}: {named}", hint=what_helps(bad, inventory))


AWS_EVERY_S = 15.0
"""A boot takes minutes there, and one request shows all machines of the cluster."""
REHEARSAL_EVERY_S = 1.0


class LostMachines:
    """Ends the waiting for nodes whose machines died; if AWS does not answer, the waiting goes on."""

    def __init__(self, change: Change, inventory: Inventory, watch: Watches) -> None:
        self._change = change
        self._inventory = inventory
        self._watch = watch
        self._every_s = REHEARSAL_EVERY_S if change.is_rehearsal else AWS_EVERY_S
        self._next_at = time.monotonic() + self._every_s

    def look(self) -> None:
        """Does `look_now` if it is time to."""
        if time.monotonic() >= self._next_at:
            self.look_now()

    def look_now(self) -> None:
        """Asks AWS once which machines have ended, and notes them in the watch."""
        with contextlib.suppress(CloudError):
            seen = instances_of(self._change.clients, self._inventory.cluster_id)
            lost = lost_slots(self._watch.now(), self._inventory, seen)
            for slot, why in lost.items():
                self._watch.lost(slot, why)
            if lost:  # `cost` may have to assume that they ended as late as this is written down
                self._change.note_machines()
        self._next_at = time.monotonic() + self._every_s


def lost_slots(watches: Iterable[NodeWatch], inventory: Inventory, seen: Iterable[InstanceState]) -> dict[int, str]:
    """Slot → how AWS says that its machine ended. Pure.

    A node that reported that it failed is left out: its own report says more than AWS's.

    A machine that AWS does not show may be too young for that (eventual consistency): it is waited for. One that was
    ready may have ended since: nothing tells a `reap --cluster` elsewhere of an `up` that is under way.
    """
    ended = {instance.instance_id: instance.state_and_reason for instance in seen if not instance.is_alive}
    ids = {node.slot: node.instance_id or "" for node in inventory.nodes}
    return {
        watch.slot: ended[ids[watch.slot]]
        for watch in watches
        if watch.phase != FAILED and ids.get(watch.slot) in ended
    }
