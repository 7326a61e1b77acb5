"""What a member of a job may say to its coordinator: each field of its type and within bounds. Pure.

A member has proved that it has the job's key, but root on one node must not be able to break the coordinator for all.
"""

from __future__ import annotations

import json
import math
from typing import Any, Iterable, Mapping

from clusterctl.on_node.job.rank_end import checked_end

PHASES = ("ready", "running", "ended")
MOST_FAILURES = 1024
MOST_ORDERS = 1024
LONGEST_WHY = 300
SHORT_LINE = 100
"""Characters that are kept of a rank's last line where there is little room."""
MOST_FAILURE_BYTES = 256 * 1024
"""The most that failures may take of a line between supervisors; with mpirun's orders that has at most 1 MiB."""


def names_of(spec: Mapping[str, Any]) -> dict[int, str]:
    """Slot → name of each member of the job."""
    return {int(member["slot"]): str(member["name"]) for member in spec["members"]}


def checked_words(received: Mapping[str, Any], names: Mapping[int, str]) -> dict[str, Any]:
    """The known fields of what a member sent; `names`: `names_of` its job, made only once.

    Raises ValueError where one of them is not what it should be.
    """
    try:
        slot = _slot(received["slot"], names)
        return {
            "slot": slot,
            "phase": _phase(received["phase"]),
            "failures": [_failure(row, slot, names[slot]) for row in _rows(received, "failures", MOST_FAILURES)],
            "orders": [_order(row, names) for row in _rows(received, "orders", MOST_ORDERS)],
            "warning": _warning(received.get("warning")),
            **{name: received.get(name) is True for name in ("is_first", "is_cancelled", "knows_end")},
        }
    except (LookupError, TypeError, AttributeError, OverflowError) as e:
        raise ValueError("not what a member of a job says: %s" % e) from e


def bounded(failures: Iterable[Mapping[str, Any]], most_bytes: int = MOST_FAILURE_BYTES) -> list[dict[str, Any]]:
    """All of the failures; from `most_bytes` on, each has no more than the beginning of its rank's last line."""
    found, left = [], most_bytes
    for failure in failures:
        left -= len(json.dumps(failure))
        found.append(
            dict(failure)
            if left >= 0
            else {**failure, "lines": [line[:SHORT_LINE] for line in failure["lines"][-1:]], "error": None}
        )
    return found


def _slot(value: Any, names: Mapping[int, str]) -> int:
    if type(value) is not int or value not in names:
        raise ValueError("%r is no slot of the job" % (value,))
    return value


def _phase(value: Any) -> str:
    if value not in PHASES:
        raise ValueError("%r is no phase" % (value,))
    return str(value)


def _rows(received: Mapping[str, Any], name: str, most: int) -> list[Any]:
    rows = received.get(name) or []
    if not isinstance(rows, list) or len(rows) > most:
        raise ValueError("%s is no list of at most %d" % (name, most))
    return rows


def _failure(row: Mapping[str, Any], slot: int, name: str) -> dict[str, Any]:
    """A rank's end, or the launcher's, which has no rank."""
    if row["rank"] is None:
        found = {**checked_end({**row, "rank": 0, "local_rank": 0}), "rank": None, "local_rank": None}
        if not found["lines"]:
            raise ValueError("a launcher's failure without a line")
    else:
        found = checked_end(row)
    marks = {mark: True for mark in ("is_vanished", "is_out_of_memory") if row.get(mark) is True}
    return {**found, **marks, "slot": slot, "name": name}


def _order(row: Mapping[str, Any], names: Mapping[int, str]) -> dict[str, Any]:
    identifier, command = row["id"], row["command"]
    if not isinstance(identifier, str) or not isinstance(command, str):
        raise ValueError("an order is two texts and a slot")
    return {"id": identifier, "slot": _slot(row["slot"], names), "command": command}


def _warning(row: Any) -> dict[str, Any] | None:
    if row is None:
        return None
    ends_s, stage, why = float(row["ends_s"]), row["stage"], row["why"]
    if not math.isfinite(ends_s) or type(stage) is not int or not isinstance(why, str):
        raise ValueError("a warning is an instant, a stage and a reason")
    return {"ends_s": ends_s, "stage": stage, "why": why[:LONGEST_WHY]}
