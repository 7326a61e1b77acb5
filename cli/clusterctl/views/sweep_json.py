"""What `clusterctl sweep --json` prints."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any  # readings of every shape

from clusterctl.probes.finding import Finding
from clusterctl.probes.report import NodeReport, SweepReport
from clusterctl.views.node_failure import node_failure_json


def sweep_json(report: SweepReport) -> dict[str, object]:
    """Every reading and every finding; what is not known is null."""
    return {
        "cluster": report.inventory.cluster,
        "cluster_id": report.inventory.cluster_id,
        "rehearsal": report.inventory.rehearsal,
        "medians": dataclasses.asdict(report.usual),
        "versions": dict(report.versions),
        "own_clock_offset_s": round(report.own_offset_s, 3),
        "wrong": [node.answer.node.name for node in report.wrong],
        "nodes": [_node(node) for node in report.nodes],
    }


def _node(report: NodeReport) -> dict[str, object]:
    answer = report.answer
    node = answer.node
    return {
        **node_failure_json(node.name, slot=node.slot, rank=node.rank, failure=answer.failure),
        "wrong": report.is_wrong,
        "findings": [_finding(finding) for finding in report.findings],
        "readings": {
            field.name: _plain(getattr(answer.readings, field.name)) for field in dataclasses.fields(answer.readings)
        },
    }


def _finding(finding: Finding) -> dict[str, object]:
    return dataclasses.asdict(finding)


def _plain(value: Any) -> Any:
    """Dataclasses as objects, at any depth; keys as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value
