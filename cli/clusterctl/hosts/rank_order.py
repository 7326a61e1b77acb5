"""`ranks: topology` of hosts: has a host discover the InfiniBand subnet, and orders the ranks by its switches."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl_infra.config.hosts import HostsConfig
from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import Inventory
from clusterctl_infra.ranks import topology_ranks

from clusterctl.hosts.fabric import Fabric, parse_fabric, switch_paths
from clusterctl.hosts.folder import HostsFolder
from clusterctl.hosts.host_check import HostLook
from clusterctl.hosts.reach import CONNECT_S
from clusterctl.hosts.record import HostsRecord
from clusterctl.lifecycle.rank_order import RankOrder
from clusterctl.probes.probe import ProbeUnreadable, first_words
from clusterctl.ssh.command import Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.results import NodeResult
from clusterctl.text.next_commands import edit
from clusterctl.text.quantities import count

FABRIC_S = 120.0
"""How long a host may take to discover its subnet; ten thousand ports take tens of seconds."""
MOST_TRIES = 3
"""How many hosts are asked, since the first may have a broken adapter; if all fail, the order stays as it is."""
PACKAGE = "infiniband-diags"
"""Its name on Debian, on Ubuntu and on Red Hat's systems (packages.debian.org, rdma-core.spec; 2026-11-26)."""


@dataclass(frozen=True, kw_only=True)
class Discovered:
    """The subnet, as one host discovered it."""

    name: str
    """The node that discovered it."""
    fabric: Fabric


def is_order_wanted(config: HostsConfig, record: HostsRecord, *, is_asked: bool) -> bool:
    """Whether to order the ranks now, with `ranks: topology`: if that was never done, or a person asks for it."""
    return config.ranks == "topology" and (is_asked or not record.ranks)


def refuse_host_reorder(config: HostsConfig, folder: HostsFolder, *, is_asked: bool) -> None:
    """Raises UsageError for --reorder-ranks if cluster.yaml does not say `ranks: topology`."""
    if is_asked and config.ranks != "topology":
        source = f"{folder.typed}/cluster.yaml"
        why = f"--reorder-ranks: a rank is its slot's number here; write ranks: topology in {source} for another order"
        raise UsageError(why, hint=edit(source))


def ordered_hosts(
    inventory: Inventory, looks: Mapping[int, HostLook], keys: LoginKeys, folder: HostsFolder
) -> RankOrder:
    """The order of ranks by switches; if no host can show the subnet, the present order and why it stays."""
    before = tuple(node.rank for node in inventory.nodes)
    names = [node.name for node in inventory.nodes]
    adapters = [looks[node.slot].adapters for node in inventory.nodes]
    found = _discovered(inventory, looks, keys) if all(adapters) else None
    if isinstance(found, Discovered):
        return order_by_switch(found, adapters, names, before, folder=folder)
    why = found or f"{names[adapters.index(())]} has no InfiniBand adapter"
    return RankOrder(ranks=before, summary=_as_they_were(why, folder))


def order_by_switch(
    found: Discovered,
    adapters: Sequence[tuple[str, ...]],
    names: Sequence[str],
    before: tuple[int, ...],
    *,
    folder: HostsFolder,
) -> RankOrder:
    """The order of ranks in which hosts that share leaf switches are neighbours; else the present one and why. Pure."""
    paths = switch_paths(found.fabric, adapters)
    if not all(paths):
        why = f"ibnetdiscover on {found.name} shows no switch at the adapters of {names[paths.index(())]}"
        return RankOrder(ranks=before, summary=_as_they_were(why, folder))
    ranks = topology_ranks(paths)
    groups = count(len({path[:2] for path in paths}), "group")
    moved = sum(rank != old for rank, old in zip(ranks, before, strict=True))
    changed = f"{count(moved, 'node')} changed rank" if moved else "no rank changed"
    return RankOrder(ranks=ranks, summary=f"by InfiniBand switch ({groups} of neighbours): {changed}")


def _as_they_were(why: str, folder: HostsFolder) -> str:
    return f"as they were: {why}; later: clusterctl up {folder.typed} --reorder-ranks"


def _discovered(inventory: Inventory, looks: Mapping[int, HostLook], keys: LoginKeys) -> Discovered | str:
    """The subnet, from the first host that can discover it; or why none can."""
    able = [node for node in inventory.nodes if looks[node.slot].has_ibnetdiscover]
    if not able:
        return f"no host has ibnetdiscover, which is in the package {PACKAGE}"
    refusals = []
    for node in able[:MOST_TRIES]:
        result = run_on_nodes(
            inventory,
            [node],
            Command(line=discovery_line(looks[node.slot]), timeout_s=FABRIC_S),
            keys=keys,
            deadlines=Deadlines.within(CONNECT_S),
        )[node.slot]
        if result.is_ok and not result.is_truncated:
            try:
                return Discovered(name=node.name, fabric=parse_fabric(result.stdout.decode(errors="replace")))
            except ProbeUnreadable as e:
                refusals.append(f"ibnetdiscover on {node.name}: {e}")
        else:
            refusals.append(f"ibnetdiscover on {node.name}: {no_subnet(result)}")
    return refusals[0]


def no_subnet(result: NodeResult) -> str:
    """Why a host did not give a subnet, for a result that failed or was cut short."""
    if result.failure is not None:
        return result.failure.message_under(result.name)
    if result.is_ok:
        return f"it prints more than the {count(len(result.stdout), 'byte')} that are read"
    errors = result.stderr.decode(errors="replace").strip().splitlines()
    return first_words(errors[-1]) if errors else f"it ended with {result.exit_code}"


def discovery_line(look: HostLook) -> str:
    """The line that prints the subnet without comments.

    It uses an active port if there is one, and runs as root, because only root may open the umad devices.
    """
    device, _, port = (look.active_infiniband or look.infiniband)[0].partition(":")
    discover = shlex.join(["sudo", "-n", "ibnetdiscover", "-C", device, "-P", port])
    return f"subnet=$({discover}) || exit; printf '%s\\n' \"$subnet\" | sed 's/[[:space:]]*#.*//'"
