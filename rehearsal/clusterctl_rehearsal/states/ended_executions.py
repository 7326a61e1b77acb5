"""The file of executions that have ended: a line for each, only appended while a region runs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterctl_rehearsal.appended_lines import append_line, appended_lines
from clusterctl_rehearsal.put_in_place import put_in_place


@dataclass(frozen=True, kw_only=True)
class ExecutionRow:
    """One execution as DescribeExecution shows it."""

    arn: str
    machine_arn: str
    started_at: float
    given: str
    status: str = "RUNNING"
    ended_at: float | None = None
    output: str | None = None
    error: str | None = None
    cause: str | None = None


def read_ended(path: Path) -> tuple[ExecutionRow, ...]:
    """The executions in the file, in the order in which they ended; a line that was written only in part is left out.

    Raises OSError, but not for a file that does not exist.
    """
    return tuple(row for line in appended_lines(path) if (row := _row(line)) is not None)


def append_ended(path: Path, row: ExecutionRow) -> None:
    """Adds an execution to the file. Raises OSError."""
    append_line(path, _line(row))


def replace_ended(path: Path, rows: Sequence[ExecutionRow]) -> None:
    """Writes the file anew, with these executions. Raises OSError."""
    put_in_place(path, "".join(f"{_line(row)}\n" for row in rows))


def _line(row: ExecutionRow) -> str:
    return json.dumps(dataclasses.asdict(row))


def _row(line: str) -> ExecutionRow | None:
    try:
        return ExecutionRow(**json.loads(line))
    except (ValueError, TypeError):
        return None
