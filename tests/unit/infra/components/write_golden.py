"""Writes tests/golden/graph-4-nodes.json anew: `python -m tests.unit.infra.components.write_golden`.

A change in it is a promise broken: a renamed resource is made anew, a changed trigger replaces every node that runs.
"""

from __future__ import annotations

from pathlib import Path

from tests.unit.infra.components.recorded_program import as_text, cluster_program, graph, record

GOLDEN = Path(__file__).parents[3] / "golden" / "graph-4-nodes.json"

if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(as_text(graph(record(cluster_program()))), encoding="utf-8")
