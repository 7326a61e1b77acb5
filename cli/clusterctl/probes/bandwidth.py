"""`clusterctl check --bandwidth infiniband`: pairs of nodes measured round by round, and the slow ones named."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl_infra.errors import SomeNodesFailed
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.output import Output
from clusterctl.probes.ask import probe_script, read_script
from clusterctl.probes.infiniband import INFINIBAND, InfinibandPort, InfinibandReading
from clusterctl.probes.perftest import (
    PACKAGE,
    PERFTEST,
    Link,
    Pair,
    PairAnswer,
    links_between,
    measuring_line,
    parse_pair,
    round_request,
    rounds_of,
)
from clusterctl.probes.probe import ProbeTrouble, ProbeUnreadable
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failure_hints import failure_line
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.results import NodeResult
from clusterctl.text.quantities import count
from clusterctl.text.table import render_table

LEAST_OF_MEDIAN = 0.95
"""Sound links of one rate differ by a percent or two."""
LEAST_OF_RATE = 0.9
"""Less than Azure's node health checks require of its own machines, 380 of 400 Gb/s (azurehpc-health-checks,
nd96isr_h100_v5: check_ib_bw_gdr 380)."""
MOST_ROWS = 60
"""The most rows of the table; if there are more links, only the slow and the failed ones are shown."""
HEADER = ("from", "to", "link", "Gb/s", "median", "rate", "")
AROUND_S = 15.0
"""What a round may take besides its measurements: Python's start, and the connection between the two nodes."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One link of a pair."""

    pair: Pair
    link: Link
    gbps: float | None
    why: str
    """Why it was not measured; empty where it was."""


@dataclass(frozen=True, kw_only=True)
class JudgedLink:
    """One link with the median of all links of its rate."""

    measured: Measured
    median_gbps: float | None

    @property
    def verdict(self) -> str:
        """`ok`, `slow: …` or `failed: …`."""
        gbps, rate_gbps = self.measured.gbps, self.measured.link.rate_gbps
        if gbps is None:
            return f"failed: {self.measured.why}"
        slower = []
        if self.median_gbps is not None and gbps < LEAST_OF_MEDIAN * self.median_gbps:
            slower.append(f"below {LEAST_OF_MEDIAN:.0%} of the median")
        if gbps < LEAST_OF_RATE * rate_gbps:
            slower.append(f"below {LEAST_OF_RATE:.0%} of the rate")
        return f"slow: {' and '.join(slower)}" if slower else "ok"


@dataclass(frozen=True, kw_only=True)
class Bandwidth:
    """Which nodes are measured, and how long one measurement may take."""

    inventory: Inventory
    nodes: tuple[InventoryNode, ...]
    keys: LoginKeys
    deadlines: Deadlines
    """The deadlines of the connections."""
    limit_s: float
    rounds: int | None
    """None: as many as it takes for every pair."""

    def carry_out(self, output: Output, *, as_json: bool) -> int:
        """The exit code: 0 when all is well, 4 when a pair is slow, fails or cannot be measured."""
        ports, unable = self._ports()
        rounds = rounds_of(tuple(ports))[: self.rounds]
        links = {pair: links_between(ports[pair.sender], ports[pair.receiver]) for pairs in rounds for pair in pairs}
        measured: list[Measured] = []
        for number, pairs in enumerate(rounds, start=1):
            output.note(f"round {number} of {len(rounds)}: measuring {count(len(pairs), 'pair')}")
            measured += self._measured(pairs, links)
        judged = judged_links(measured)
        if as_json:
            output.json(bandwidth_json(self.inventory, judged, unable))
        else:
            for line in bandwidth_lines(self.inventory, judged, unable, rounds=len(rounds)):
                output.data(line)
        is_well = bool(judged) and not unable and all(each.verdict == "ok" for each in judged)
        return 0 if is_well else SomeNodesFailed.exit_code

    def _ports(self) -> tuple[dict[int, tuple[InfinibandPort, ...]], dict[str, str]]:
        """The ACTIVE ports of each slot that can be measured, and why the other nodes cannot."""
        results = self._run(self.nodes, probe_script((INFINIBAND, PERFTEST)), limit_s=self.limit_s + AROUND_S)
        ports, unable = {}, {}
        for node in self.nodes:
            result = results[node.slot]
            found = read_script(result.stdout.decode(errors="replace"), (INFINIBAND, PERFTEST))
            reading = found[INFINIBAND.name]
            if result.failure is not None:
                unable[node.name] = failure_line(result.failure, self.inventory, node)
            elif isinstance(reading, ProbeTrouble):
                unable[node.name] = reading.message
            elif not (active := active_ports(reading)):
                unable[node.name] = "no InfiniBand port is ACTIVE"
            elif found[PERFTEST.name] is not True:
                unable[node.name] = f"there is no ib_write_bw: install the package {PACKAGE} (by apt-get or dnf)"
            else:
                ports[node.slot] = active
        return ports, unable

    def _measured(self, pairs: Sequence[Pair], links: Mapping[Pair, Sequence[Link]]) -> list[Measured]:
        """The measurements of one round."""
        nodes = {node.slot: node for node in self.nodes}
        slots = [slot for pair in pairs for slot in (pair.sender, pair.receiver)]
        most_links = max(len(links[pair]) for pair in pairs)
        results = self._run(
            [nodes[slot] for slot in slots],
            measuring_line(),
            limit_s=2 * most_links * self.limit_s + self.limit_s + AROUND_S,
            stdin=round_request(pairs, links, nodes, limit_s=self.limit_s),
        )
        return [row for pair in pairs for row in measured_links(pair, links[pair], _answers(pair, results))]

    def _run(
        self, nodes: Sequence[InventoryNode], line: str, *, limit_s: float, stdin: bytes | None = None
    ) -> dict[int, NodeResult]:
        return run_on_nodes(
            self.inventory,
            nodes,
            line,
            keys=self.keys,
            deadlines=self.deadlines,
            timeout_s=limit_s,
            stdin=stdin,
            fan_out=max(1, len(nodes)),  # no node may wait until another is done: both of a pair run at the same time
        )


def active_ports(reading: InfinibandReading) -> tuple[InfinibandPort, ...]:
    """The ports of a node that carry data."""
    return tuple(port for port in reading.ports if port.state == "ACTIVE")


def measured_links(
    pair: Pair, links: Sequence[Link], answers: tuple[PairAnswer | str, PairAnswer | str]
) -> list[Measured]:
    """A row for each link of the pair; `answers`: sender's and receiver's, or why there is none. Pure."""
    sender, receiver = answers
    figures = {} if isinstance(sender, str) else {row.index: row for row in sender.links}
    troubles = [each if isinstance(each, str) else each.trouble for each in (sender, receiver)]
    why = next((each for each in troubles if each), "not measured")
    rows = []
    for index, link in enumerate(links):
        row = figures.get(index)
        rows.append(
            Measured(
                pair=pair,
                link=link,
                gbps=None if row is None else row.gbps,
                why=why if row is None else row.why,
            )
        )
    return rows


def judged_links(measured: Sequence[Measured]) -> tuple[JudgedLink, ...]:
    """Each link with the median of all links of its rate. Pure."""
    figures: dict[float, list[float]] = {}
    for each in measured:
        if each.gbps is not None:
            figures.setdefault(each.link.rate_gbps, []).append(each.gbps)
    medians = {rate: statistics.median(values) for rate, values in figures.items()}
    return tuple(JudgedLink(measured=each, median_gbps=medians.get(each.link.rate_gbps)) for each in measured)


def bandwidth_lines(
    inventory: Inventory, judged: Sequence[JudgedLink], unable: Mapping[str, str], *, rounds: int
) -> list[str]:
    """Nodes that were not measured, the table, a node that all bad pairs have in common, and a line about all links."""
    names = {node.slot: node.name for node in inventory.nodes}
    bad = [each for each in judged if each.verdict != "ok"]
    simulated = ", simulated" if inventory.rehearsal else ""
    lines = [f"{name}: not measured: {why}" for name, why in unable.items()]
    shown = judged if len(judged) <= MOST_ROWS else bad
    if shown:
        lines.append(render_table(HEADER, [_row(each, names) for each in shown], right={"Gb/s", "median", "rate"}))
    lines += [
        f"{names[slot]}: all of its pairs, and only they, are slow or failed; next: {sweep(inventory.cluster, slot)}"
        for slot in suspects(judged)
    ]
    pairs = len({each.measured.pair for each in judged})
    what = f"{count(pairs, 'pair')}, {count(len(judged), 'link')}, {count(rounds, 'round')} of ib_write_bw{simulated}"
    verdict = "nothing was measured" if not judged else f"{count(len(bad), 'link')} slow or failed" if bad else "ok"
    return [*lines, f"{what}: {verdict}"]


def sweep(cluster: str, slot: int) -> str:
    """The command that shows the node's ports."""
    words = ["clusterctl", "sweep", "--cluster", cluster, "--node", str(slot), "--probe", INFINIBAND.name]
    return shlex.join(words)


def suspects(judged: Sequence[JudgedLink]) -> tuple[int, ...]:
    """The slots that are in every pair with a bad link, and in no other pair; empty if only one pair is bad."""
    bad = {each.measured.pair for each in judged if each.verdict != "ok"}
    pairs = {each.measured.pair for each in judged}
    slots = sorted({slot for pair in bad for slot in (pair.sender, pair.receiver)})
    own = {slot: {pair for pair in pairs if slot in (pair.sender, pair.receiver)} for slot in slots}
    return tuple(slot for slot in slots if own[slot] == bad and len(bad) > 1)


def bandwidth_json(inventory: Inventory, judged: Sequence[JudgedLink], unable: Mapping[str, str]) -> dict[str, object]:
    """Every link of every pair, and the nodes that were not measured."""
    names = {node.slot: node.name for node in inventory.nodes}
    return {
        "cluster": inventory.cluster,
        "not_measured": [{"node": name, "why": why} for name, why in unable.items()],
        "suspects": [names[slot] for slot in suspects(judged)],
        "links": [
            {
                "from": names[each.measured.pair.sender],
                "to": names[each.measured.pair.receiver],
                "from_port": each.measured.link.sender,
                "to_port": each.measured.link.receiver,
                "gbps": each.measured.gbps,
                "median_gbps": each.median_gbps,
                "rate_gbps": each.measured.link.rate_gbps,
                "verdict": each.verdict,
            }
            for each in judged
        ],
    }


def _row(each: JudgedLink, names: Mapping[int, str]) -> list[str]:
    pair, link = each.measured.pair, each.measured.link
    ends = link.sender if link.sender == link.receiver else f"{link.sender} {link.receiver}"
    gbps = "" if each.measured.gbps is None else f"{each.measured.gbps:.1f}"
    median = "" if each.median_gbps is None else f"{each.median_gbps:.1f}"
    return [names[pair.sender], names[pair.receiver], ends, gbps, median, f"{link.rate_gbps:g}", each.verdict]


def _answers(pair: Pair, results: Mapping[int, NodeResult]) -> tuple[PairAnswer | str, PairAnswer | str]:
    return _answer(results[pair.sender]), _answer(results[pair.receiver])


def _answer(result: NodeResult) -> PairAnswer | str:
    """The node's answer, or why there is none."""
    if result.failure is not None:
        return result.failure.message_under(result.name)
    try:
        return parse_pair(result.stdout.decode(errors="replace"))
    except ProbeUnreadable as e:
        errors = result.stderr.decode(errors="replace").strip().splitlines()
        return errors[-1] if errors else str(e)
