"""A check before a training: it looks at what most often keeps nodes from starting one, without torch, all at once."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl_infra.errors import SomeNodesFailed, UsageError
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.output import Output
from clusterctl.probes.ask import probe_script, read_script
from clusterctl.probes.clock import CLOCK
from clusterctl.probes.disk import DISK
from clusterctl.probes.finding import Finding, sentences_of
from clusterctl.probes.gpu import GPU
from clusterctl.probes.network import MOST_NODES, NAME, PORTS, NetworkReading, network_findings, network_probe
from clusterctl.probes.probe import ProbeTrouble
from clusterctl.probes.readings import NodeAnswer, Readings, readings_of
from clusterctl.probes.report import judged
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failure_hints import failure_line
from clusterctl.ssh.failures import node_failure_json
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.results import NodeResult
from clusterctl.text.node_set import fold_numbers
from clusterctl.text.quantities import count

IDLE_GPU_MIB = 512.0
"""Above this, a GPU's memory counts as in use: the driver and an idle node's services take less."""


@dataclass(frozen=True, kw_only=True)
class CheckedNode:
    """One node with what is out of the ordinary."""

    answer: NodeAnswer
    network: NetworkReading | None
    findings: tuple[Finding, ...]

    @property
    def is_wrong(self) -> bool:
        """Whether the node was not reached, or has a fault."""
        return self.answer.failure is not None or any(finding.level == "fault" for finding in self.findings)


@dataclass(frozen=True, kw_only=True)
class Check:
    """What `check` asks, and which nodes."""

    inventory: Inventory
    nodes: tuple[InventoryNode, ...]
    keys: LoginKeys
    connect_timeout_s: float
    limit_s: float
    """How long nodes try to reach each other."""

    def carry_out(self, output: Output, *, as_json: bool) -> int:
        """The exit code: 0 when all is well, 4 when something is not. Raises UsageError for too many nodes."""
        if len(self.nodes) > MOST_NODES:
            raise UsageError(
                f"{len(self.nodes)} nodes: at most {MOST_NODES} are checked at once",
                hint="clusterctl check --node 0-99",
            )
        checked = self._judged(*self._asked())
        wrong = [node for node in checked if node.is_wrong]
        if as_json:
            output.json(check_json(self.inventory, checked))
        else:
            for line in check_lines(self.inventory, checked):
                output.data(line)
        return SomeNodesFailed.exit_code if wrong else 0

    def _asked(self) -> tuple[list[NodeAnswer], dict[int, NetworkReading | ProbeTrouble]]:
        # The network first: all nodes have to try at the same time.
        probes = (network_probe(self.nodes, limit_s=self.limit_s), CLOCK, DISK, GPU)
        ended_at_s: dict[int, float] = {}

        def note_end(result: NodeResult) -> None:
            ended_at_s[result.slot] = time.time()

        results = run_on_nodes(
            self.inventory,
            self.nodes,
            probe_script(probes),
            keys=self.keys,
            deadlines=Deadlines.within(self.connect_timeout_s),
            timeout_s=float(sum(probe.limit_s for probe in probes)),
            on_result=note_end,
            fan_out=len(self.nodes),  # no node may wait until another is done: they try to reach each other
        )
        answers: list[NodeAnswer] = []
        networks: dict[int, NetworkReading | ProbeTrouble] = {}
        for node in self.nodes:
            result, end_s = results[node.slot], ended_at_s[node.slot]
            found = dict(read_script(result.stdout.decode(errors="replace"), probes)) if result.stdout else {}
            heard, found = without_network(found)
            if heard is not None:
                networks[node.slot] = heard
            answer = NodeAnswer(
                node=node,
                readings=readings_of(found) if found else Readings(),
                failure=result.failure,
                asked_at_s=end_s - result.duration_s,
                answered_at_s=end_s,
            )
            answers.append(answer)
        return answers, networks

    def _judged(
        self, answers: Sequence[NodeAnswer], networks: Mapping[int, NetworkReading | ProbeTrouble]
    ) -> list[CheckedNode]:
        names = {node.slot: node.name for node in self.nodes}
        unheard = [slot for slot in names if not isinstance(networks.get(slot), NetworkReading)]
        checked = []
        for report in judged(self.inventory, answers).nodes:
            slot = report.answer.node.slot
            heard = networks.get(slot)
            network = heard if isinstance(heard, NetworkReading) else None
            findings = list(report.findings)
            if network is not None:
                findings += network_findings(network, names, unheard=unheard)
            elif report.answer.failure is None:
                findings.append(unchecked_network(heard if isinstance(heard, ProbeTrouble) else None))
            findings += memory_findings(report.answer.readings)
            checked.append(CheckedNode(answer=report.answer, network=network, findings=tuple(findings)))
        return checked


def without_network(
    found: Mapping[str, object],
) -> tuple[NetworkReading | ProbeTrouble | None, dict[str, object]]:
    """(the network probe's result, those of the other probes, whose troubles are reported as in a sweep)."""
    heard = found.get(NAME)
    others = {name: value for name, value in found.items() if name != NAME}
    return heard if isinstance(heard, NetworkReading | ProbeTrouble) else None, others


def unchecked_network(trouble: ProbeTrouble | None) -> Finding:
    """The finding about a node that answered without a reading of the network; `trouble`: why, if known."""
    why = None if trouble is None else trouble.message
    return Finding(level="fault", kind="its network was not checked", detail=why)


def memory_findings(readings: Readings) -> list[Finding]:
    """Remarks about GPUs whose memory is in use: by another training, or by what one has left behind."""
    return [
        Finding(level="remark", kind="memory in use", detail=f"{gpu.memory_used_mib:.0f} MiB", gpu=gpu.index)
        for gpu in (() if readings.gpu is None else readings.gpu.gpus)
        if gpu.memory_used_mib is not None and gpu.memory_used_mib > IDLE_GPU_MIB
    ]


def check_lines(inventory: Inventory, checked: Sequence[CheckedNode]) -> list[str]:
    """A line for each node with something to report, and one for all."""
    lines = []
    for node in checked:
        failure = node.answer.failure
        sentences = [] if failure is None else [failure_line(failure, inventory, node.answer.node)]
        sentences += sentences_of(node.findings)
        if sentences:
            lines.append(f"{node.answer.node.name}: {'; '.join(sentences)}")
    wrong = sum(node.is_wrong for node in checked)
    verdict = "ok" if not wrong else f"{wrong} of them not ok"
    looked = "names, clocks, TCP between all, disks, GPU memory"
    lines.append(f"{count(len(checked), 'node')}, {looked} (ports {fold_numbers(PORTS)}): {verdict}")
    return lines


def check_json(inventory: Inventory, checked: Sequence[CheckedNode]) -> dict[str, object]:
    """Every finding, and every pair that fails: from which node to which port of which other."""
    names = {node.answer.node.slot: node.answer.node.name for node in checked}
    return {
        "cluster": inventory.cluster,
        "ports": list(PORTS),
        "wrong": [node.answer.node.name for node in checked if node.is_wrong],
        "pairs": [
            {"from": node.answer.node.name, "to": names[row.slot], "port": row.port, "why": row.why}
            for node in checked
            for row in (() if node.network is None else node.network.unreached)
            if row.slot in names
        ],
        "nodes": [
            {
                **node_failure_json(
                    node.answer.node.name,
                    slot=node.answer.node.slot,
                    rank=node.answer.node.rank,
                    failure=node.answer.failure,
                ),
                "wrong": node.is_wrong,
                "findings": [dataclasses.asdict(finding) for finding in node.findings],
            }
            for node in checked
        ],
    }
