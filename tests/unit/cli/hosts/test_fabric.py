"""Where hosts stand in an InfiniBand subnet: ibnetdiscover's text, leaf switches, and the order of ranks."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from clusterctl.hosts.fabric import parse_fabric, switch_paths
from clusterctl.hosts.folder import HostsFolder
from clusterctl.hosts.host_check import HostLook
from clusterctl.hosts.meaning import hosts_inventory
from clusterctl.hosts.rank_order import (
    Discovered,
    discovery_line,
    is_order_wanted,
    no_subnet,
    order_by_switch,
    ordered_hosts,
    refuse_host_reorder,
)
from clusterctl.probes.probe import ProbeUnreadable
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.results import NodeResult
from clusterctl_infra.errors import UsageError
from clusterctl_infra.ranks import topology_ranks
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cli.hosts.fabrics import adapter_guid, printed
from tests.unit.cli.hosts.test_host_check import LOOK
from tests.unit.cli.hosts.test_meaning import config, record
from tests.unit.infra.components.example_clusters import HOSTS

FOLDER = HostsFolder(path=Path("/lab"), typed="lab")
RACKS = st.lists(st.integers(0, 5), min_size=1, max_size=24)
"""The leaf switch of each host."""


def ranks_of(text: str, adapters: list[list[str]]) -> list[int]:
    return list(topology_ranks(switch_paths(parse_fabric(text), adapters)))


def fat_tree(racks: list[int]) -> str:
    """Every leaf below the same two spines."""
    leaves = {rack: [adapter_guid(host) for host, own in enumerate(racks) if own == rack] for rack in set(racks)}
    return printed(leaves, {rack: [100, 101] for rack in leaves})


def adapters_of(racks: list[int]) -> list[list[str]]:
    return [[adapter_guid(host)] for host in range(len(racks))]


GROUPED = """\
Chassis 1 (guid 0x8f10400411a08)

# Spine Nodes
vendid=0x8f1
switchguid=0x8f104003f1e29(8f104003f1e29)\t# ISR2012 spine 1
Switch\t24 "S-0008f104003f1e29"\t\t# "[5] \\"H-0000000000000001\\"" base port 0 lid 742 lmc 0
[24][ext 12]\t"H-0002c90200247010"[1](2c90200247011) \t\t# "atlas35" lid 1252 4xSDR s=1 w=2 v=4
[12]\t"S-0008f1040040165b"[6][ext 3]\t\t# "ISR2012" lid 751 4xSDR
Rt\t2 "R-0008f10400000001"\t\t# "router"
[1](8f10400000002) \t"S-0008f104003f1e29"[7]\t\t# lid 3 lmc 0 "ISR2012" lid 742 4xSDR
"""


def test_links_are_read_with_groups_external_ports_routers_and_without_comments() -> None:
    """`ibnetdiscover --grouping --full`, which clusterctl does not ask for, has all that a line can have."""
    spine = "S-0008f104003f1e29"
    ends = {"H-0002c90200247010", "S-0008f1040040165b", "R-0008f10400000001"}
    links = {(spine, other) for other in ends} | {(other, spine) for other in ends}
    assert parse_fabric(GROUPED).links == links
    assert parse_fabric(re.sub(r"\s*#.*", "", GROUPED)).links == links
    assert switch_paths(parse_fabric(GROUPED), [["0002c90200247010"]]) == (("pod 0", "group 0", spine),)


@pytest.mark.parametrize(
    "text", ["", "ibwarn: [17] mad_rpc_open_port: can't open UMAD port\n", '[1]\t"H-506b4b03003fa9b6"[1]\n']
)
def test_a_text_without_a_node_cannot_be_read(text: str) -> None:
    with pytest.raises(ProbeUnreadable, match="it lists no switch and no adapter"):
        parse_fabric(text)


@given(text=st.text(alphabet='SHR-[]()"#0123456789abcdef \t\nwitchCa', max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        fabric = parse_fabric(text)
    except ProbeUnreadable:
        return
    assert all((right, left) in fabric.links for left, right in fabric.links)


@given(racks=RACKS)
def test_hosts_of_a_leaf_switch_have_neighbouring_ranks_and_slot_0_has_rank_0(racks: list[int]) -> None:
    ranks = ranks_of(fat_tree(racks), adapters_of(racks))
    assert ranks[0] == 0
    order = [racks[ranks.index(rank)] for rank in range(len(racks))]
    begun = [rack for place, rack in enumerate(order) if place == 0 or order[place - 1] != rack]
    assert len(begun) == len(set(racks))


@given(racks=RACKS)
def test_every_link_stands_at_both_its_ends_and_one_is_enough(racks: list[int]) -> None:
    text = fat_tree(racks)
    switches, _, adapters = text.partition("\nCa\t")
    assert parse_fabric(switches).links == parse_fabric(text).links
    only = {link for link in parse_fabric("Ca\t" + adapters).links if link[0][0] == "H"}
    assert only == {link for link in parse_fabric(text).links if link[0][0] == "H"}


def test_leaves_below_the_same_switches_are_a_pod_and_stay_together() -> None:
    """Three levels: leaves 0 and 2 hang below 10 and 11, leaves 1 and 3 below 12; 20 is above all of them."""
    leaves = {leaf: [adapter_guid(leaf)] for leaf in range(4)}
    text = printed(leaves, {0: [10, 11], 2: [11], 1: [12], 3: [12], 10: [20], 11: [20], 12: [20]})
    assert ranks_of(text, [[adapter_guid(leaf)] for leaf in range(4)]) == [0, 2, 1, 3]


def rails(hosts: dict[int, list[int]]) -> str:
    """Hosts with an adapter at each of these switches, all of which hang below one spine."""
    switches = sorted({switch for own in hosts.values() for switch in own})
    leaves = {
        switch: [adapter_guid(host, switch) for host, own in hosts.items() if switch in own] for switch in switches
    }
    return printed(leaves, {switch: [100] for switch in switches})


def test_a_host_with_a_broken_link_stays_with_its_group() -> None:
    """Rail-optimised: host 2 has lost its link to switch 1, and still shares switch 0 with host 0."""
    text = rails({0: [0, 1], 1: [2, 3], 2: [0], 3: [2, 3]})
    adapters = [[adapter_guid(host, switch) for switch in range(4)] for host in range(4)]
    assert ranks_of(text, adapters) == [0, 2, 1, 3]


def found(text: str) -> Discovered:
    return Discovered(name="lab-0", fabric=parse_fabric(text))


def test_the_order_is_told_with_how_many_groups_there_are() -> None:
    racks = [0, 1, 0, 1]
    adapters = [tuple(each) for each in adapters_of(racks)]
    order = order_by_switch(found(fat_tree(racks)), adapters, ["a", "b", "c", "d"], (0, 1, 2, 3), folder=FOLDER)
    assert order.ranks == (0, 2, 1, 3)
    assert order.summary == "by InfiniBand switch (2 groups of neighbours): 2 nodes changed rank"
    again = order_by_switch(found(fat_tree(racks)), adapters, ["a", "b", "c", "d"], order.ranks, folder=FOLDER)
    assert again.summary == "by InfiniBand switch (2 groups of neighbours): no rank changed"


def test_hosts_that_are_not_in_the_subnet_or_without_a_switch_stay_in_their_order() -> None:
    text = printed({1: [adapter_guid(0)]}, {})
    order = order_by_switch(
        found(text), [(adapter_guid(0),), (adapter_guid(9),)], ["lab-0", "lab-1"], (0, 1), folder=FOLDER
    )
    assert order.ranks == (0, 1)
    why = "as they were: ibnetdiscover on lab-0 shows no switch at the adapters of lab-1"
    assert order.summary == f"{why}; later: clusterctl up lab --reorder-ranks"
    back_to_back = f'Ca\t1 "H-{adapter_guid(0)}"\n[1]({adapter_guid(0)}) \t"H-{adapter_guid(1)}"[1]\n'
    assert switch_paths(parse_fabric(back_to_back), [[adapter_guid(0)], [adapter_guid(1)]]) == ((), ())


def test_the_subnet_is_discovered_by_the_port_that_carries_data() -> None:
    assert discovery_line(LOOK).startswith("subnet=$(sudo -n ibnetdiscover -C mlx5_0 -P 1) || exit; ")


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (LOOK, "no host has ibnetdiscover, which is in the package infiniband-diags"),
        (replace(LOOK, adapters=()), f"{HOSTS}-0 has no InfiniBand adapter"),
    ],
)
def test_hosts_without_the_program_or_adapters_stay_in_their_order_and_nobody_is_asked(
    first: HostLook, why: str
) -> None:
    inventory = hosts_inventory(config(), record(), folder=FOLDER.path)
    looks = {0: replace(first, has_ibnetdiscover=False), 1: replace(LOOK, has_ibnetdiscover=False)}
    order = ordered_hosts(inventory, looks, LoginKeys(keys=(), described="none"), FOLDER)
    assert (order.ranks, order.summary) == (
        (0, 1),
        f"as they were: {why}; later: clusterctl up lab --reorder-ranks",
    )


@pytest.mark.parametrize(
    ("code", "stderr", "reason"),
    [
        (0, b"", "it prints more than the 4 bytes that are read"),
        (1, b"ibwarn: no port\nfailed to open it\n", "failed to open it"),
        (7, b"", "it ended with 7"),
    ],
)
def test_why_a_host_shows_no_subnet_is_told(code: int, stderr: bytes, reason: str) -> None:
    answer = NodeResult(
        slot=0, name="lab-0", exit_code=code, signal=None, failure=None, stdout=b"Swit", stderr=stderr, duration_s=1.0
    )
    assert no_subnet(replace(answer, is_truncated=code == 0)) == reason


def test_the_order_is_made_once_and_when_a_person_asks() -> None:
    topology = config().model_copy(update={"ranks": "topology"})
    ordered = replace(record(topology), ranks=(0, 1))
    assert is_order_wanted(topology, record(topology), is_asked=False)
    assert not is_order_wanted(topology, ordered, is_asked=False)
    assert is_order_wanted(topology, ordered, is_asked=True)
    assert not is_order_wanted(config(), ordered, is_asked=True)
    refuse_host_reorder(topology, FOLDER, is_asked=True)
    with pytest.raises(UsageError, match="write ranks: topology in"):
        refuse_host_reorder(config(), FOLDER, is_asked=True)
