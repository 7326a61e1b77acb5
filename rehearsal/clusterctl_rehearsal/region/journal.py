"""The journal, from which the bill knows what is gone: a line for each end and each changed count, only appended."""

from __future__ import annotations

import json
from pathlib import Path

from clusterctl_infra.names import ID_TAG

from clusterctl_rehearsal.appended_lines import append_line, appended_lines
from clusterctl_rehearsal.region.record import Properties, Record

BILL_FILE = "bill.jsonl"
"""Lies beside the store; `clean` of a whole home removes it."""
INSTANCE = "aws:ec2/instance:Instance"
RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"
ADDRESS = "aws:ec2/eip:Eip"
BILLING = (INSTANCE, RESERVATION, ADDRESS, "aws:ec2/natGateway:NatGateway")
"""Types whose price does not depend on their content: billed by the hour, or for a capacity block at once."""
IMAGE_DISK_GIB = 100
"""The size of every image's root disk here, unless a machine asks for another."""
ENDING_AT = "ending_at"
"""The fact that says since when an instance has been shutting down."""
UPFRONT_USD = "upfront_usd"
"""The fact that says what a capacity block cost when it was bought; it costs nothing later."""


class Journal:
    """The journal's file. A line is written before the store changes, so a region that is killed may write it twice."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def follow(self, old: Record | None, new: Record | None, *, at: float) -> None:
        """Writes what changes for the bill when the store replaces `old` by `new`."""
        if old is None or not bills(old):
            return
        if new is None or not bills(new):
            ended_at = at if new is None else new.facts.get(ENDING_AT, at)
            self._append({**billed_facts(old), "at": ended_at, "what": "ended"})
        elif count_of(old) != count_of(new):
            self._append({**billed_facts(old), "at": at, "what": "counted", "count": count_of(new)})

    def rows(self) -> list[Properties]:
        """All lines, in the order in which they were written; one that was written only in part is left out."""
        return [row for line in appended_lines(self.path) if (row := _read(line)) is not None]

    def _append(self, row: Properties) -> None:
        append_line(self.path, json.dumps(row))


def bills(record: Record) -> bool:
    """Whether it costs money now.

    An instance that is shutting down does not (EC2 user guide, instance lifecycle; 2026-11), nor does what the account
    had before any cluster.
    """
    is_made_here = not record.facts.get("existing")
    return record.token in BILLING and record.is_live and record.state != "shutting-down" and is_made_here


def billed_facts(record: Record) -> Properties:
    """The facts of a record from which its bill is computed."""
    return {
        "id": record.id,
        "token": record.token,
        "region": record.region,
        "cluster_id": record.tags.get(ID_TAG),
        "began_at": record.created_at,
        "instance_type": record.facts.get("instance_type") or record.inputs.get("instanceType"),
        "reservation": record.facts.get("reservation"),
        "market": record.facts.get("market"),
        "first_count": count_of(record),
        "disk_gib": root_disk_gib(record),
        "upfront_usd": record.facts.get(UPFRONT_USD),
    }


def count_of(record: Record) -> int:
    """How many machines a reservation holds; 1 for anything else."""
    return int(record.inputs.get("instanceCount", 1)) if record.token == RESERVATION else 1


def root_disk_gib(record: Record) -> int:
    """The size of an instance's root disk, which is gone with it; 0 for anything else."""
    if record.token != INSTANCE:
        return 0
    asked = record.inputs.get("rootBlockDevice") or {}
    return int(asked.get("volumeSize") or IMAGE_DISK_GIB)


def _read(line: str) -> Properties | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
