"""What exists in the region, for a person."""

from __future__ import annotations

from typing import Any  # JSON values


def listed(rows: dict[str, Any]) -> str:
    """Machines one a line, the rest counted by type, lasting faults."""
    resources = rows["resources"]
    machines = [row for row in resources if row.get("node")]
    lines = [
        f"{row['node']:<16} {row['state']:<14} {row['private_ip']:<15} {row['machines']:<8} {row['id']}"
        for row in machines
    ]
    counts: dict[str, int] = {}
    for row in resources:
        if not row.get("node"):
            kind = row["type"].rpartition(":")[2]
            counts[kind] = counts.get(kind, 0) + 1
    if counts:
        lines.append("also: " + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    lines += [f"fault: {key} = {value}" for key, value in rows["faults"].items()]
    lines += sorted({f"of another home: {row['cluster']} ({row['clean']})" for row in rows["elsewhere"]})
    return "\n".join(lines) if lines else "nothing exists in the rehearsed region"
