"""ib_write_bw between pairs: the rounds, the links of a pair, what it prints, and which links are slow."""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any  # parsed JSON

import pytest
from clusterctl.probes.bandwidth import (
    MOST_ROWS,
    JudgedLink,
    Measured,
    bandwidth_json,
    bandwidth_lines,
    judged_links,
    measured_links,
    suspects,
)
from clusterctl.probes.perftest import (
    Link,
    LinkAnswer,
    Pair,
    PairAnswer,
    data_rate_gbps,
    links_between,
    parse_bandwidth,
    parse_pair,
    round_request,
    rounds_of,
)
from clusterctl.probes.probe import ProbeUnreadable
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cli.probes.test_infiniband import PORT

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusterctl_infra.outputs import Inventory

RULE = "-" * 87
HEAD = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
PRINTED = f"""\
{RULE}
                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx5_0
 Number of qps   : 1            Transport type : IB
 Connection type : RC           Using SRQ      : OFF
 PCIe relax order: ON
 ibv_wr* API     : ON
 TX depth        : 128
 CQ Moderation   : 1
 Mtu             : 4096[B]
 Link type       : IB
 Max inline data : 0[B]
 rdma_cm QPs     : OFF
 Data ex. method : Ethernet
{RULE}
 local address: LID 0x1a QPN 0x0b5f PSN 0x9d1b1e RKey 0x1fff00 VAddr 0x007f2d1c400000
 remote address: LID 0x1b QPN 0x0b61 PSN 0x3ff1bc RKey 0x1fff00 VAddr 0x007fc97ff50000
{RULE}
{HEAD}
Conflicting CPU frequency values detected: 3902.477000 != 400.000000. CPU Frequency is not max.
 1048576    5000             394.97             394.52 \t\t   0.047031
{RULE}
"""
"""In the form that perftest 4.5 to 6.2 print (linux-rdma/perftest, src/perftest_parameters.c; README; 2026-11-26)."""


def test_the_average_is_read_though_a_warning_stands_before_it() -> None:
    assert parse_bandwidth(PRINTED) == 394.52


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Couldn't connect to 10.0.8.1:18515",
        PRINTED.replace("Gb/sec", "MB/sec"),
        PRINTED.partition(" 1048576 ")[0],
        PRINTED.replace("394.52", "nan"),
        PRINTED.replace("394.52", "9" * 400 + ".5"),
    ],
)
def test_what_has_no_figure_in_gigabits_cannot_be_read(text: str) -> None:
    with pytest.raises(ProbeUnreadable, match="no figure"):
        parse_bandwidth(text)


FIGURES = st.text(alphabet=" 0123456789.", max_size=60)


@given(before=st.lists(st.sampled_from(PRINTED.splitlines()), max_size=5), figures=st.lists(FIGURES, max_size=3))
def test_any_output_is_read_or_refused(before: list[str], figures: list[str]) -> None:
    with contextlib.suppress(ProbeUnreadable):
        assert 0 <= parse_bandwidth("\n".join([*before, HEAD, *figures])) < math.inf


@given(slots=st.lists(st.integers(0, 500), unique=True, max_size=33))
def test_every_two_nodes_meet_once_and_no_node_is_twice_in_a_round(slots: list[int]) -> None:
    rounds = rounds_of(slots)
    met = Counter(frozenset((pair.sender, pair.receiver)) for pairs in rounds for pair in pairs)
    assert set(met) == {frozenset((a, b)) for a in slots for b in slots if a != b}
    assert set(met.values()) <= {1}
    for pairs in rounds:
        busy = [slot for pair in pairs for slot in (pair.sender, pair.receiver)]
        assert len(busy) == len(set(busy)) == len(slots) // 2 * 2
    assert len(rounds) == max(0, len(slots) - 1 + len(slots) % 2)


@given(nodes=st.integers(2, 40))
def test_every_node_sends_in_about_half_of_its_pairs(nodes: int) -> None:
    senders = Counter(pair.sender for pairs in rounds_of(range(nodes)) for pair in pairs)
    assert all(abs(2 * senders[slot] - (nodes - 1)) <= 1 for slot in range(nodes))


SECOND = replace(PORT, name="mlx5_1:1", rate_gbps=200.0, rate="200 Gb/sec (4X HDR)")


def test_ports_of_one_name_are_linked_and_the_slower_end_bounds_the_link() -> None:
    """A node whose first port is down: its others keep their partners."""
    assert links_between((PORT, SECOND), (SECOND,)) == (Link(sender="mlx5_1:1", receiver="mlx5_1:1", rate_gbps=200.0),)
    other = replace(PORT, name="ibp24s0:1", rate_gbps=100.0)
    assert links_between((PORT, SECOND), (other,)) == (Link(sender="mlx5_0:1", receiver="ibp24s0:1", rate_gbps=100.0),)


@pytest.mark.parametrize(
    ("rate", "gbps", "carries"),
    [("40 Gb/sec (4X QDR)", 40.0, 32.0), ("40 Gb/sec (4X FDR10)", 40.0, 40.0), ("400 Gb/sec (4X NDR)", 400.0, 400.0)],
)
def test_old_links_carry_four_fifths_of_their_rate(rate: str, gbps: float, carries: float) -> None:
    assert data_rate_gbps(replace(PORT, rate=rate, rate_gbps=gbps)) == carries


NDR = Link(sender="mlx5_0:1", receiver="mlx5_0:1", rate_gbps=400.0)


def measured(sender: int, receiver: int, gbps: float | None, why: str = "", link: Link = NDR) -> Measured:
    return Measured(pair=Pair(sender=sender, receiver=receiver), link=link, gbps=gbps, why=why)


def verdicts(*rows: Measured) -> list[str]:
    return [each.verdict for each in judged_links(rows)]


def test_a_link_is_slow_by_the_median_by_the_rate_or_both() -> None:
    sound = [measured(0, slot, 394.0) for slot in (1, 2, 3)]
    assert verdicts(*sound, measured(0, 4, 374.0))[-1] == "slow: below 95% of the median"
    assert verdicts(*sound, measured(0, 4, 196.0))[-1] == "slow: below 95% of the median and below 90% of the rate"
    assert verdicts(*sound, measured(0, 4, 376.0)) == ["ok"] * 4
    assert verdicts(measured(0, 1, 196.0)) == ["slow: below 90% of the rate"]
    hdr = replace(NDR, rate_gbps=200.0)
    assert verdicts(*sound, measured(0, 4, 197.0, link=hdr)) == ["ok"] * 4, "each rate has a median of its own"
    assert verdicts(measured(0, 1, None, "no result in time")) == ["failed: no result in time"]


def test_a_node_that_all_bad_pairs_have_in_common_is_named() -> None:
    rows = [measured(0, 1, 394.0), measured(0, 2, 100.0), measured(2, 1, None, "x"), measured(3, 2, 100.0)]
    rows += [measured(0, 3, 394.0), measured(3, 1, 394.0)]
    assert suspects(judged_links(rows)) == (2,)
    assert suspects(judged_links(rows[:2])) == (), "either node of one bad pair may be the cause"
    assert suspects(judged_links([*rows, measured(0, 1, 1.0)])) == ()


ANSWER = PairAnswer(trouble="", links=(LinkAnswer(index=0, gbps=394.0, why=""),))


@pytest.mark.parametrize(
    ("sender", "receiver", "figures"),
    [
        (ANSWER, PairAnswer(trouble="", links=()), [(394.0, ""), (None, "not measured")]),
        (ANSWER, PairAnswer(trouble="no answer", links=()), [(394.0, ""), (None, "no answer")]),
        ("lost", ANSWER, [(None, "lost"), (None, "lost")]),
        (PairAnswer(trouble="refused", links=()), "lost", [(None, "refused"), (None, "refused")]),
    ],
)
def test_a_link_without_a_figure_says_why(
    sender: PairAnswer | str, receiver: PairAnswer | str, figures: list[tuple[float | None, str]]
) -> None:
    pair = Pair(sender=0, receiver=1)
    rows = measured_links(pair, (NDR, replace(NDR, sender="mlx5_1:1")), (sender, receiver))
    assert [(row.gbps, row.why) for row in rows] == figures


def test_what_a_node_prints_is_read_with_a_reason_for_each_link_without_a_figure() -> None:
    links = [
        {"link": 0, "text": PRINTED, "why": ""},
        {"link": 1, "text": "", "why": "Couldn't connect"},
        {"link": 2, "text": "what", "why": ""},
    ]
    answer = parse_pair("noise\n" + json.dumps({"trouble": "", "links": links}))
    assert [row.gbps for row in answer.links] == [394.52, None, None]
    assert [row.why for row in answer.links] == ["", "Couldn't connect", "no figure: what"]
    with pytest.raises(ProbeUnreadable, match="ib_write_bw: bash: python3: not found"):
        parse_pair("bash: python3: not found\n")


def test_a_round_tells_each_pair_its_address_and_links(make_inventory: Callable[..., Inventory]) -> None:
    nodes = {node.slot: node for node in make_inventory(size=2).nodes}
    pair = Pair(sender=1, receiver=0)
    request: dict[str, Any] = json.loads(round_request([pair], {pair: (NDR,)}, nodes, limit_s=10.0))
    row = {"from": 1, "to": 0, "address": nodes[0].private_ip, "links": [["mlx5_0:1", "mlx5_0:1"]]}
    assert request == {"pairs": [row], "port": 18514, "limit_s": 10.0}


def test_the_table_has_every_link_and_of_many_only_the_bad_ones(make_inventory: Callable[..., Inventory]) -> None:
    inventory = make_inventory(size=4)
    rows = judged_links([measured(0, 1, 394.0), measured(2, 3, 394.0), measured(0, 2, None, "no result in time")])
    lines = bandwidth_lines(inventory, rows, {"train-3": "not reached"}, rounds=3)
    assert lines[0] == "train-3: not measured: not reached"
    assert "train-0  train-2  mlx5_0:1          394.0   400  failed: no result in time" in lines[1]
    assert lines[-1] == "3 pairs, 3 links, 3 rounds of ib_write_bw: 1 link slow or failed"
    many: list[JudgedLink] = [*rows, *judged_links([measured(0, 1, 394.0)] * MOST_ROWS)]
    assert len(bandwidth_lines(inventory, many, {}, rounds=3)[0].splitlines()) == 2
    assert bandwidth_lines(inventory, (), {}, rounds=0) == [
        "0 pairs, 0 links, 0 rounds of ib_write_bw: nothing was measured"
    ]
    simulated = bandwidth_lines(replace(inventory, rehearsal=True), (), {}, rounds=0)
    assert "ib_write_bw, simulated: nothing" in simulated[0]
    data: dict[str, Any] = bandwidth_json(inventory, rows, {"train-3": "not reached"})
    assert data["links"][2]["verdict"] == "failed: no result in time"
    assert data["not_measured"] == [{"node": "train-3", "why": "not reached"}]
