"""A sweep judged: every node's findings against the cluster's own median and absolute limits. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl_infra.outputs import Inventory

from clusterctl.probes.clock_findings import clock_findings, own_offset_s
from clusterctl.probes.finding import Finding
from clusterctl.probes.gpu_findings import Medians, gpu_findings, usual_of
from clusterctl.probes.infiniband_findings import infiniband_findings, usual_infiniband
from clusterctl.probes.node_findings import node_findings
from clusterctl.probes.readings import NodeAnswer
from clusterctl.probes.version_findings import usual_versions, version_findings


@dataclass(frozen=True, kw_only=True)
class NodeReport:
    """One node with what is out of the ordinary."""

    answer: NodeAnswer
    findings: tuple[Finding, ...]

    @property
    def is_wrong(self) -> bool:
        """Whether the node was not reached, or has a fault."""
        return self.answer.failure is not None or any(finding.level == "fault" for finding in self.findings)


@dataclass(frozen=True, kw_only=True)
class SweepReport:
    """All nodes, by slot."""

    inventory: Inventory
    nodes: tuple[NodeReport, ...]
    usual: Medians
    versions: Mapping[str, str]
    """What most nodes have."""
    own_offset_s: float
    """How far the nodes' clocks are ahead of this computer's, by their median."""

    @property
    def wrong(self) -> tuple[NodeReport, ...]:
        """The nodes that have a fault, or were not reached."""
        return tuple(node for node in self.nodes if node.is_wrong)


def judged(inventory: Inventory, answers: Sequence[NodeAnswer]) -> SweepReport:
    """The report on the nodes that were asked, in the order of their answers."""
    readings = [answer.readings for answer in answers]
    usual = usual_of([gpu for each in readings if each.gpu is not None for gpu in each.gpu.gpus])
    versions = usual_versions(readings)
    own_s = own_offset_s(answers)
    counts = Counter(each.efa.devices for each in readings if each.efa is not None)
    efa_devices = counts.most_common(1)[0][0] if counts else 0
    usual_ports = usual_infiniband(readings)
    nodes = []
    for answer in answers:
        slot = answer.node.slot
        findings = [
            *gpu_findings(
                answer.readings, cluster=inventory.cluster, slot=slot, expected=inventory.gpus_per_node, usual=usual
            ),
            *node_findings(answer.readings, cluster=inventory.cluster, slot=slot, efa_devices=efa_devices),
            *infiniband_findings(answer.readings.infiniband, usual_ports, cluster=inventory.cluster, slot=slot),
            *clock_findings(answer, own_s=own_s),
            *version_findings(answer.readings, versions),
        ]
        nodes.append(NodeReport(answer=answer, findings=tuple(findings)))
    return SweepReport(
        inventory=inventory, nodes=tuple(nodes), usual=usual.medians, versions=versions, own_offset_s=own_s
    )
