"""`clusterctl down` of `target: hosts`: removes all that clusterctl wrote on the hosts, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clusterctl_infra.errors import SomeNodesFailed, UsageError
from clusterctl_infra.outputs import Inventory

from clusterctl.home import Home
from clusterctl.hosts.meaning import nodes_of
from clusterctl.hosts.reach import change_hosts, remove_request
from clusterctl.hosts.record import (
    HostsRecord,
    forget_record,
    held,
    keep_inventory,
    read_record,
    write_record,
)
from clusterctl.jobs.ending import keep_all
from clusterctl.jobs.running import jobs_running_on, jobs_text
from clusterctl.output import Output
from clusterctl.ssh.remote_command import usable_keys
from clusterctl.text.next_commands import down_again
from clusterctl.text.quantities import count


@dataclass(frozen=True, kw_only=True)
class HostsDown:
    """The `down` of a cluster of hosts that a person asked for."""

    inventory: Inventory
    is_agreed: bool


def take_down_hosts(request: HostsDown, output: Output, home: Home) -> None:
    """Asks, keeps the jobs' output, and cleans the hosts.

    Raises SomeNodesFailed if hosts could not be cleaned; they stay known here. Raises UsageError.
    """
    inventory = request.inventory
    with held(inventory.name, home, verb="down"):
        record = read_record(inventory.name, home)
        if record is None:
            message = f"{inventory.cluster}: what this computer keeps of it is gone; docs/hosts.md says how to clean"
            raise UsageError(f"{message} the hosts by hand", hint=f"clusterctl forget {inventory.cluster} --yes")
        _tell_and_ask(request, output, home)
        for line in keep_all(inventory, home):
            output.note(f"  jobs     {line}")
        failed = _clean(inventory, record, output, home)
    if failed:
        raise SomeNodesFailed(
            f"{count(len(failed), 'host')} could not be cleaned: {', '.join(failed)}; {inventory.cluster} stays known",
            hint=down_again(inventory),
        )
    output.note(f"{inventory.cluster}: {count(len(inventory.nodes), 'host')} as before; the hosts run on")


def forget_hosts(inventory: Inventory, home: Home, *, is_agreed: bool) -> None:
    """Removes what this computer knows of the cluster.

    Raises UsageError while hosts may be nodes of it, unless a person agreed to that.
    """
    if read_record(inventory.name, home) is not None and not is_agreed:
        message = f"{inventory.cluster}: its hosts have the agent and its keys, which only down removes"
        raise UsageError(f"{message}; --yes forgets it all the same", hint=down_again(inventory))
    forget_record(inventory.name, home)


def _tell_and_ask(request: HostsDown, output: Output, home: Home) -> None:
    """Shows what is removed and what stays, and asks. Raises UsageError unless the person agrees."""
    inventory = request.inventory
    named = ", ".join(f"{node.name} ({node.public_ip})" for node in inventory.nodes)
    output.note(
        f"{inventory.cluster}: agent, mounts, keys, environment and what jobs left below /var/lib/clusterctl go"
    )
    output.note(f"  from     {named}; these hosts run on, and nothing else on them is touched")
    output.note("  stays    what packages: installed and scripts: did")
    jobs = jobs_running_on(inventory, inventory.nodes, home)
    if jobs:
        output.note(f"  jobs     {jobs_text(jobs)}: {'it ends' if len(jobs) == 1 else 'they end'} too")
    if request.is_agreed:
        return
    hint = f"{down_again(inventory)} --yes"
    if not output.can_ask:
        raise UsageError("not agreed, since there is no terminal to ask at; nothing was changed", hint=hint)
    if not output.confirm("Clean these hosts?"):
        raise UsageError("not agreed, nothing was changed", hint=hint)


def _clean(inventory: Inventory, record: HostsRecord, output: Output, home: Home) -> list[str]:
    """Cleans all hosts; returns the places of those that could not be cleaned, which stay in record and inventory."""
    hosts = (*record.hosts, *record.leaving)
    there = replace(inventory, nodes=nodes_of(inventory.name, hosts))
    requests = {node.slot: remove_request(record.cluster_id) for node in there.nodes}
    failed = change_hosts("remove", there, requests, usable_keys(inventory, home))
    for slot, why in sorted(failed.items()):
        output.note(f" {hosts[slot].place}: {why}")
    left = tuple(hosts[slot] for slot in sorted(failed))
    if left:
        write_record(replace(record, hosts=left, leaving=(), content=""), home)
        keep_inventory(replace(inventory, nodes=nodes_of(inventory.name, left)), home)
    else:
        forget_record(record.name, home)
    return [host.place for host in left]
