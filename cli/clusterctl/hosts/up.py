"""`clusterctl up` of `target: hosts`: makes existing machines nodes, if all of them can be nodes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from clusterctl_infra.config.hooks import LIMIT_S, hooks_before_ready
from clusterctl_infra.config.hosts import HostsConfig
from clusterctl_infra.errors import HostsUnfit, SomeNodesFailed, UsageError
from clusterctl_infra.names import HOSTS_SUFFIX
from clusterctl_infra.outputs import Inventory

from clusterctl.engine.known_clusters import inventory_here
from clusterctl.home import Home
from clusterctl.hosts.folder import HostsFolder, hosts_folder
from clusterctl.hosts.host_check import HostLook, hindrances
from clusterctl.hosts.meaning import addresses, hosts_inventory, install_request, with_membership
from clusterctl.hosts.plan import advice_lines, plan_lines, work_lines
from clusterctl.hosts.rank_order import is_order_wanted, ordered_hosts, refuse_host_reorder
from clusterctl.hosts.reach import change_hosts, look_at_hosts, remove_request
from clusterctl.hosts.record import (
    HostsRecord,
    forget_record,
    held,
    keep_inventory,
    new_record,
    new_slots,
    read_record,
    wanted_record,
    write_record,
)
from clusterctl.jobs.ending import keep_all
from clusterctl.jobs.running import jobs_running_on, jobs_text
from clusterctl.lifecycle.membership import membership_file
from clusterctl.lifecycle.readiness import NodeWatch, Patience, ReadyWatch, why_not_ready
from clusterctl.output import Output
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.remote_command import usable_keys
from clusterctl.status.nodes_table import nodes_json
from clusterctl.text.next_commands import down_again, up_again
from clusterctl.text.quantities import count

READY_S = 120.0
"""How long nodes may take without mounts and hooks: the agent starts within seconds, as the machine runs already."""
MOUNT_S = 240.0
"""How long the agent tries to mount (`MOUNTED_TIMEOUT_S` of node/mounts.py)."""
PHASE_S = 60.0
"""After the usual time, a node is still waited for if it entered its present phase less than this long ago."""


@dataclass(frozen=True, kw_only=True)
class HostsUp:
    """The `up` of a cluster of hosts that a person asked for."""

    folder: HostsFolder
    is_agreed: bool
    is_forced: bool
    as_json: bool
    reorders_ranks: bool
    """`--reorder-ranks`: whether the ranks are ordered again."""
    ready_timeout_s: float | None


def bring_up_hosts(request: HostsUp, output: Output, home: Home) -> None:
    """Makes the hosts nodes, tells them of each other, and waits until they are ready.

    Raises HostsUnfit before anything is changed if a host cannot be a node, and later if the agent could not be
    installed; SomeNodesFailed if nodes are not ready in time; UsageError.
    """
    config = request.folder.config()
    refuse_host_reorder(config, request.folder, is_asked=request.reorders_ranks)
    with held(config.name, home, verb="up"):
        _refuse_other_folder(request.folder, config.name, home)
        before = read_record(config.name, home)
        record = wanted_record(config, before or new_record(config, now=datetime.now(UTC)))
        inventory = hosts_inventory(config, record, folder=request.folder.path)
        keys = usable_keys(inventory, home)
        looks = _fit_hosts(config, record, inventory, keys)
        _refuse_lost_jobs(request, config, before, record, home)
        for line in (*plan_lines(inventory), *work_lines(config), *advice_lines(inventory, datetime.now(UTC))):
            output.note(line)
        _agree(request, before, record, output)
        if is_order_wanted(config, record, is_asked=request.reorders_ranks):
            order = ordered_hosts(inventory, looks, keys, request.folder)
            output.note(f" ranks       {order.summary}")
            record = replace(record, ranks=order.ranks)
            inventory = hosts_inventory(config, record, folder=request.folder.path)
        _keep(record, inventory, home)
        _keep_output(config, request, before, record, output, home)
        record = _without_leaving(config, request, record, keys, output)
        _install(request, config, before, record, keys, home)
        record = with_membership(config, record)
        inventory = hosts_inventory(config, record, folder=request.folder.path)
        _keep(record, inventory, home)
        _wait(request, config, record, inventory, home, output)


def _refuse_other_folder(folder: HostsFolder, name: str, home: Home) -> None:
    """Raises UsageError if another folder has a cluster of this name, whose hosts would have to leave it."""
    known = inventory_here(home, name + HOSTS_SUFFIX)
    if known is None or known.stack_dir in (None, str(folder.path)):
        return
    if hosts_folder(Path(known.stack_dir)) is not None:
        message = f"{known.cluster} is the cluster of {known.stack_dir}, whose hosts would leave it"
        raise UsageError(f"{message}: choose another name", hint=f"clusterctl nodes --cluster {known.cluster}")


def _fit_hosts(config: HostsConfig, record: HostsRecord, inventory: Inventory, keys: LoginKeys) -> dict[int, HostLook]:
    """Looks at all hosts: slot → what was found. Raises HostsUnfit with every reason why a host cannot be a node."""
    began_s = time.time()
    seen = look_at_hosts(inventory, config, keys)
    ended_s = time.time()
    why: dict[int, list[str]] = {}
    for slot, look in seen.items():
        if isinstance(look, HostLook):
            why[slot] = hindrances(look, config, slot, cluster_id=record.cluster_id, began_s=began_s, ended_s=ended_s)
        else:
            why[slot] = [look]
    unfit = [node for node in inventory.nodes if why[node.slot]]
    if unfit:
        raise HostsUnfit(
            f"{record.cluster}: {len(unfit)} of {count(len(inventory.nodes), 'host')} cannot be a node, "
            "nothing was changed on any",
            problems=[
                f"  {node.name} ({record.hosts[node.slot].place}): {each}" for node in unfit for each in why[node.slot]
            ],
        )
    return {slot: look for slot, look in seen.items() if isinstance(look, HostLook)}


def _refuse_lost_jobs(
    request: HostsUp, config: HostsConfig, before: HostsRecord | None, after: HostsRecord, home: Home
) -> None:
    """Raises UsageError if a job runs on a host that leaves, or gets another slot or `private_ip`; not with --force."""
    if before is None or request.is_forced:
        return
    stays = [(host.host_key, host.private_ip) for host in after.hosts]
    changed = {
        slot for slot, host in enumerate(before.hosts) if (host.host_key, host.private_ip) not in stays[slot : slot + 1]
    }
    inventory = hosts_inventory(config, before, folder=request.folder.path)
    jobs = jobs_running_on(inventory, [node for node in inventory.nodes if node.slot in changed], home)
    if jobs:
        message = f"{count(len(jobs), 'job')} would be lost, nothing was changed: {jobs_text(jobs)}"
        raise UsageError(message, hint=f"{up_again(inventory)} --force")


def _agree(request: HostsUp, before: HostsRecord | None, record: HostsRecord, output: Output) -> None:
    """Asks, if there are changes on the hosts to agree to. Raises UsageError unless the person agrees."""
    new = new_slots(before, record)
    is_other_work = before is not None and record.work not in ("", before.work)
    if request.is_agreed or not (new or record.leaving or is_other_work):
        return
    does = [f"make {count(len(new), 'host')} nodes"] if new else []
    does += ["mount, install and run on all hosts what cluster.yaml says now"] if is_other_work else []
    does += [f"remove the agent from {', '.join(host.place for host in record.leaving)}"] if record.leaving else []
    hint = f"clusterctl up {request.folder.typed} --yes"
    if not output.can_ask or request.as_json:
        why = "--json never asks" if request.as_json else "there is no terminal to ask at"
        raise UsageError(f"not agreed, since {why}; nothing was changed. It would {' and '.join(does)}", hint=hint)
    if not output.confirm(f"{' and '.join(does).capitalize()}?"):
        raise UsageError("not agreed, nothing was changed", hint=hint)


def _keep(record: HostsRecord, inventory: Inventory, home: Home) -> None:
    """Writes record and inventory: first before any host changes, so that a half-made cluster can be ended."""
    write_record(record, home)
    keep_inventory(inventory, home)


def _keep_output(
    config: HostsConfig, request: HostsUp, before: HostsRecord | None, record: HostsRecord, output: Output, home: Home
) -> None:
    """Brings the output of jobs from the hosts that leave: they are cleaned next."""
    left = {host.host_key for host in record.leaving}
    if before is None or not left:
        return
    inventory = hosts_inventory(config, before, folder=request.folder.path)
    leaving = tuple(node for node in inventory.nodes if node.host_public_key in left)
    if not leaving:
        return
    for line in keep_all(replace(inventory, nodes=leaving), home):
        output.note(f"  jobs     {line}")


def _without_leaving(
    config: HostsConfig, request: HostsUp, record: HostsRecord, keys: LoginKeys, output: Output
) -> HostsRecord:
    """Cleans the hosts that leave, and returns the record without them.

    Those that could not be cleaned stay in it, and the next command tries again.
    """
    if not record.leaving:
        return record
    there = hosts_inventory(config, replace(record, hosts=record.leaving), folder=request.folder.path)
    request_each = {node.slot: remove_request(record.cluster_id) for node in there.nodes}
    failed = change_hosts("remove", there, request_each, keys)
    for slot, why in failed.items():
        output.note(f" {record.leaving[slot].place} has left and is not clean: {why}")
    return replace(record, leaving=tuple(record.leaving[slot] for slot in failed))


def _install(
    request: HostsUp,
    config: HostsConfig,
    before: HostsRecord | None,
    record: HostsRecord,
    keys: LoginKeys,
    home: Home,
) -> None:
    """Installs the agent and its files on all hosts. Raises HostsUnfit if that fails on one of them.

    Then it is removed again from all hosts that were not nodes before.
    """
    write_record(record, home)
    inventory = hosts_inventory(config, record, folder=request.folder.path)
    failed = change_hosts(
        "install", inventory, {node.slot: install_request(config, record, node.slot) for node in inventory.nodes}, keys
    )
    if not failed:
        return
    problems = [f"  {inventory.nodes[slot].name} ({record.hosts[slot].place}): {why}" for slot, why in failed.items()]
    begun = {slot: remove_request(record.cluster_id) for slot in new_slots(before, record)}
    left = change_hosts("remove", inventory, begun, keys)
    problems += [f"  {record.hosts[slot].place}: what was begun is left there: {why}" for slot, why in left.items()]
    kept = tuple(host for slot, host in enumerate(record.hosts) if slot in left or slot not in begun)
    _after_failure(config, request, replace(record, hosts=kept), home)
    what = "what was begun is removed" if not left else f"{count(len(left), 'host')} could not be cleaned"
    raise HostsUnfit(
        f"{record.cluster}: the agent was not installed on {count(len(failed), 'host')}; {what}",
        problems=problems,
        hint=down_again(inventory) if left else None,
    )


def _after_failure(config: HostsConfig, request: HostsUp, record: HostsRecord, home: Home) -> None:
    """Writes record and inventory with the hosts that are still in `record`; if there are none, removes both."""
    if not record.hosts and not record.leaving:
        forget_record(record.name, home)
        return
    write_record(record, home)
    keep_inventory(hosts_inventory(config, record, folder=request.folder.path), home)


def _wait(
    request: HostsUp, config: HostsConfig, record: HostsRecord, inventory: Inventory, home: Home, output: Output
) -> None:
    """Waits until all nodes are ready and have the membership. Raises SomeNodesFailed if some are not in time."""
    watch = ReadyWatch(home.inventory_file(inventory.cluster), changed=_teller(output))
    try:
        for node in inventory.nodes:
            watch.start(node.slot, node.name)
        # Who may log in is decided by the hosts' owner, so the membership says nothing of it.
        where = addresses(record.hosts)
        watch.settle(membership_file(inventory, slot_cidr=where, env=config.env, authorized_keys=None))
        patience = patience_of_hosts(config, timeout_s=request.ready_timeout_s)
        watches = watch.wait(patience, on_tick=lambda: None)
    finally:
        watch.stop()
    bad = [each for each in watches if not each.is_ready]
    for each in bad:
        for line in why_not_ready(each, now=datetime.now(UTC)):
            output.note(f" {line}")
    ready = len(watches) - len(bad)
    output.note(
        f"{inventory.name} · {ready}/{len(watches)} ready · nothing ends these hosts · "
        f"generation {inventory.generation}"
    )
    if request.as_json:
        output.json(nodes_json(inventory))
    if bad:
        named = ", ".join(each.name for each in bad)
        raise SomeNodesFailed(
            f"{count(len(bad), 'node')} of {len(watches)} not ready: {named}",
            hint=f"{up_again(inventory)}, or {down_again(inventory)}",
        )


def patience_of_hosts(config: HostsConfig, *, timeout_s: float | None) -> Patience:
    """How long nodes may take until they are ready: for their start, for mounts, and for each hook up to its own limit.

    `timeout_s`: the time that a person allowed instead; None: none was given.
    """
    if timeout_s is not None:
        return Patience(usual_s=timeout_s)
    usual_s = READY_S + (MOUNT_S if config.storage else 0)
    return Patience(
        usual_s=usual_s, phase_s=PHASE_S, hooks_s=LIMIT_S * hooks_before_ready(config.packages, config.scripts)
    )


def _teller(output: Output) -> Callable[[NodeWatch], None]:
    shown: set[tuple[str, str]] = set()

    def tell(watch: NodeWatch) -> None:
        if watch.phase in ("ready", "failed") and (watch.name, watch.phase) not in shown:
            shown.add((watch.name, watch.phase))
            output.note(f" {watch.name:<11} {watch.phase}")

    return tell
