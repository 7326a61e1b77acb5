"""ib_write_bw between pairs of nodes: which pairs in which round, over which links, and what it printed. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from clusterctl_infra.outputs import InventoryNode
from clusterctl_infra.strict_json import Fields, NotAsExpected, parsed_object

from clusterctl.probes.infiniband import InfinibandPort
from clusterctl.probes.probe import Probe, ProbeUnreadable, first_words

PACKAGE = "perftest"
"""Its name on Debian, on Ubuntu and on Red Hat's systems (linux-rdma/perftest: debian/control, perftest.spec;
2026-11-26)."""
CONTROL_PORT = 18514
"""The port over which the two nodes of a pair talk. The links' own ports follow it: 18515 is perftest's usual one
(perftest(1), --port)."""
MOST_LINKS = 64
_HEAD = re.compile(r"\s*#bytes\s+#iterations\s+BW peak\[Gb/sec\]\s+BW average\[Gb/sec\]", re.ASCII)
_ROW = re.compile(r"\s*\d+\s+\d+\s+\d+\.\d+\s+(\d{1,9}\.\d+)\s+\d+\.\d+(?:\s|$)", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One node that writes into another's memory."""

    sender: int
    receiver: int


@dataclass(frozen=True, kw_only=True)
class Link:
    """The ports of the two ends of a measurement, and what the slower of them can carry."""

    sender: str
    receiver: str
    rate_gbps: float


@dataclass(frozen=True, kw_only=True)
class LinkAnswer:
    """What ib_write_bw reported about one link."""

    index: int
    gbps: float | None
    why: str
    """Why there is no figure; empty where there is one."""


@dataclass(frozen=True, kw_only=True)
class PairAnswer:
    """What one node reported about its pair."""

    trouble: str
    links: tuple[LinkAnswer, ...]


def rounds_of(slots: Sequence[int]) -> tuple[tuple[Pair, ...], ...]:
    """Pairs of slots, every two once, in as few rounds as possible; no slot is twice in a round.

    This is the circle method for tournaments: one slot stays, all others move on by a place each round. Each slot is
    the sender in half of its pairs, give or take one.
    """
    places: list[int | None] = [*range(len(slots)), *([None] if len(slots) % 2 else [])]
    half = len(places) // 2
    rounds = []
    for _ in range(len(places) - 1):
        facing = zip(places[:half], reversed(places[half:]), strict=True)
        rounds.append(tuple(_pair(slots, a, b) for a, b in facing if a is not None and b is not None))
        places = [places[0], places[-1], *places[1:-1]]
    return tuple(rounds)


def _pair(slots: Sequence[int], first: int, second: int) -> Pair:
    """The pair at two places; each place sends to the half of the others that follows it in the circle."""
    twice_apart = 2 * ((second - first) % len(slots))
    is_first_sender = twice_apart < len(slots) or (twice_apart == len(slots) and first < second)
    sender, receiver = (first, second) if is_first_sender else (second, first)
    return Pair(sender=slots[sender], receiver=slots[receiver])


def links_between(sender: Sequence[InfinibandPort], receiver: Sequence[InfinibandPort]) -> tuple[Link, ...]:
    """The links between ports of the same name, since a rail's switch may have no link to another rail's; if no names
    match, between ports in the same place.
    """
    names = {port.name: port for port in receiver}
    both = [(port, names[port.name]) for port in sender if port.name in names]
    return tuple(
        Link(sender=mine.name, receiver=theirs.name, rate_gbps=min(data_rate_gbps(mine), data_rate_gbps(theirs)))
        for mine, theirs in (both or zip(sender, receiver, strict=False))
    )[:MOST_LINKS]


def data_rate_gbps(port: InfinibandPort) -> float:
    """What sysfs's rate leaves for data: up to QDR, eight bits take ten on the wire (InfiniBand, vol. 2)."""
    return port.rate_gbps * (0.8 if re.search(r"\b(SDR|DDR|QDR)\b", port.rate) else 1.0)


def round_request(
    pairs: Sequence[Pair], links: Mapping[Pair, Sequence[Link]], nodes: Mapping[int, InventoryNode], *, limit_s: float
) -> bytes:
    """What `on_node/measure_infiniband` reads from its stdin."""
    rows = [
        {
            "from": pair.sender,
            "to": pair.receiver,
            "address": nodes[pair.receiver].private_ip,
            "links": [[link.sender, link.receiver] for link in links[pair]],
        }
        for pair in pairs
    ]
    return json.dumps({"pairs": rows, "port": CONTROL_PORT, "limit_s": limit_s}).encode()


def measuring_line() -> str:
    """The command that each node of a round runs, the same for all: the node knows its slot."""
    program = files("clusterctl.on_node").joinpath("measure_infiniband.py").read_text(encoding="utf-8")
    slot = "$(sed -n 's/^CLUSTERCTL_SLOT=//p' /etc/clusterctl/env | tr -d \"'\")"
    return f'exec {shlex.join(["python3", "-I", "-c", program])} "{slot}"'


def parse_pair(text: str) -> PairAnswer:
    """The line that the node's program prints. Raises ProbeUnreadable."""
    lines = text.strip().splitlines()
    try:
        row = parsed_object(lines[-1] if lines else "")
        links = tuple(map(_link_answer, row.objects("links", most=MOST_LINKS)))
        return PairAnswer(trouble=row.text("trouble"), links=links)
    except NotAsExpected as e:
        raise ProbeUnreadable(f"ib_write_bw: {first_words(text)}") from e


def parse_bandwidth(text: str) -> float:
    """The average in Gb/s that ib_write_bw printed. Raises ProbeUnreadable.

    `#bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]`, then a row (linux-rdma/perftest,
    src/perftest_parameters.h: RESULT_FMT_G and REPORT_FMT; 2026-11-26). A warning may stand between the two.
    """
    is_below_head = False
    for line in text.splitlines():
        is_below_head = is_below_head or _HEAD.match(line) is not None
        if is_below_head and (row := _ROW.match(line)) is not None:
            return float(row[1])
    raise ProbeUnreadable(f"no figure: {first_words(text)}")


def _link_answer(row: Fields) -> LinkAnswer:
    index, why = row.whole("link"), row.text("why")
    if why:
        return LinkAnswer(index=index, gbps=None, why=why)
    try:
        return LinkAnswer(index=index, gbps=parse_bandwidth(row.text("text")), why="")
    except ProbeUnreadable as e:
        return LinkAnswer(index=index, gbps=None, why=str(e))


def _parse_presence(text: str) -> bool:
    return text.strip() == "yes"


PERFTEST = Probe(
    name="perftest",
    meaning="whether ib_write_bw is there",
    command="command -v ib_write_bw >/dev/null && echo yes || echo no",
    limit_s=5,
    parse=_parse_presence,
)
