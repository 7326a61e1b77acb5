"""Typed events from the lines that `pulumi up --json` prints; what is unknown is left out.

Shapes: pulumi sdk/go/common/apitype/events.go, 3.250.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal  # `Any`: JSON objects before they are checked

SHOWN_SEVERITIES = ("info", "info#err", "warning", "error")
_AWS_CODE = re.compile(r"\bapi error ([A-Za-z][A-Za-z0-9.]*): (.+)", re.DOTALL)
_PREAMBLE = re.compile(r"^(?:\d+ errors? occurred:|update failed|\* )\s*")


@dataclass(frozen=True, kw_only=True)
class Step:
    """A resource began to change, is done, or failed."""

    stage: Literal["began", "done", "failed"]
    op: str
    """`create`, `update`, `delete`, `same`, `read`, `create-replacement`, …"""
    urn: str
    type: str
    id: str
    """The physical id; empty before there is one."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    is_custom: bool = True
    """Something outside the engine, not a component or a provider: what a person counts as a resource."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """A message about one resource, or about the whole run (empty urn)."""

    urn: str
    severity: str
    text: str
    ephemeral: bool


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The engine is done; the state is written."""

    succeeded: bool
    changes: Mapping[str, int]
    duration_s: float


Event = Step | Message | Finished

_STAGES: Mapping[str, Literal["began", "done", "failed"]] = {
    "resourcePreEvent": "began",
    "resOutputsEvent": "done",
    "resOpFailedEvent": "failed",
}


def parse_event(line: str) -> Event | None:
    """The event in one line, or None for a line that is of no use here."""
    if '"severity":"debug"' in line and '"diagnosticEvent":{' in line[:120]:
        return None  # nine lines of ten, and of no use here: not parsed
    try:
        row = json.loads(line)
    except ValueError:
        return None
    if not isinstance(row, dict):
        return None
    for key, stage in _STAGES.items():
        if isinstance(row.get(key), dict):
            return _step(row[key].get("metadata") or {}, stage)
    if isinstance(row.get("diagnosticEvent"), dict):
        return _message(row["diagnosticEvent"])
    if isinstance(row.get("summaryEvent"), dict):
        return _finished(row["summaryEvent"])
    return None


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why a run failed; equal reasons are listed once."""

    code: str | None
    """AWS's own code, such as InsufficientInstanceCapacity; None when AWS did not say no."""
    text: str
    urn: str


def refusals(messages: list[Message]) -> tuple[Refusal, ...]:
    """What went wrong, each thing once, AWS's own refusals first; never `update failed` alone."""
    found: dict[tuple[str | None, str], Refusal] = {}
    for message in messages:
        if message.severity != "error":
            continue
        refusal = read_refusal(message)
        if refusal.text:
            found.setdefault((refusal.code, refusal.text if refusal.code is None else ""), refusal)
    return tuple(sorted(found.values(), key=lambda refusal: refusal.code is None))


def read_refusal(message: Message) -> Refusal:
    """AWS's code and sentence out of one error text, as the AWS provider and botocore write them."""
    text = _PREAMBLE.sub("", message.text.strip())
    if match := _AWS_CODE.search(text):
        return Refusal(code=match[1], text=_first_line(match[2]), urn=message.urn)
    return Refusal(code=None, text=text, urn=message.urn)


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0].strip()


def _step(row: Mapping[str, Any], stage: Literal["began", "done", "failed"]) -> Step:
    state = row.get("new") or row.get("old") or {}
    type = str(row.get("type", ""))
    return Step(
        stage=stage,
        op=str(row.get("op", "")),
        urn=str(row.get("urn", "")),
        type=type,
        id=str(state.get("id") or (row.get("old") or {}).get("id") or ""),
        inputs=state.get("inputs") or {},
        outputs=state.get("outputs") or {},
        is_custom=bool(state.get("custom")) and not type.startswith("pulumi:"),
    )


def _message(row: Mapping[str, Any]) -> Message | None:
    severity = str(row.get("severity", ""))
    if severity not in SHOWN_SEVERITIES:
        return None
    return Message(
        urn=str(row.get("urn", "")),
        severity="info" if severity == "info#err" else severity,
        text=str(row.get("message", "")).strip(),
        ephemeral=bool(row.get("ephemeral", False)),
    )


def _finished(row: Mapping[str, Any]) -> Finished:
    changes = row.get("resourceChanges") or {}
    return Finished(
        succeeded=row.get("result") == "succeeded",
        changes={str(op): int(count) for op, count in changes.items()},
        duration_s=float(row.get("durationSeconds") or 0),
    )
