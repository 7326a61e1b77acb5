"""What the verbs print: what exists in the region, what it cost, and how to reach the region."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any  # JSON values

from clusterctl_infra.region_keys import KeyPair

from clusterctl_rehearsal.region.bill import BillRow


def listed(rows: dict[str, Any]) -> str:
    """Machines one a line, other resources counted by type, lasting faults, and clusters of other homes."""
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


def exports(endpoint: str, keys: KeyPair, *, region_name: str) -> str:
    """Lines for a shell, after which clients of AWS's API speak to the region."""
    variables = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": region_name,
        "AWS_DEFAULT_REGION": region_name,  # what boto3 and version 1 of the AWS CLI read (AWS CLI 1.46.3, 2026-11-26)
        "AWS_ACCESS_KEY_ID": keys.access_key_id,
        "AWS_SECRET_ACCESS_KEY": keys.secret_access_key,
    }
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())


def bill_json(rows: Sequence[BillRow]) -> dict[str, object]:
    """The bill's rows for a program; times in UTC, as `cost --json` has them."""
    listed = [
        {
            "id": row.id,
            "kind": row.kind,
            "cluster_id": row.cluster_id,
            "started_at": _instant(row.began_at),
            "ended_at": None if row.ended_at is None else _instant(row.ended_at),
            "usd": row.usd,
        }
        for row in rows
    ]
    return {"simulated": True, "rows": listed}


def bill_text(rows: Sequence[BillRow]) -> str:
    """A line for each thing that ever billed, and the sum; all of it simulated money."""
    lines = [
        f"{row.id:<26} {row.kind:<20} {_clock(row.began_at)}  {_clock(row.ended_at):<11}  {_usd(row.usd):>10}"
        for row in rows
    ]
    known = [row.usd for row in rows if row.usd is not None]
    total = _usd(sum(known) if len(known) == len(rows) else None)
    return "\n".join([*lines, f"in all {total} (simulated; traffic and what is stored are not in it)"])


def _instant(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _clock(at: float | None) -> str:
    return "still there" if at is None else f"{datetime.fromtimestamp(at, UTC):%d %H:%M:%S}"


def _usd(amount: float | None) -> str:
    return "unknown" if amount is None else f"${amount:.2f}"
