"""Corrections of a ledger's spans, for when a command that was cut off wrote down too little, or nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any  # JSON before it is checked

from clusterctl_infra.ledger import Ledger, Span, ledger_from_json, ledger_to_json


@dataclass(frozen=True, kw_only=True)
class LedgerCorrection:
    """The spans as they truly were, for the ledger of one generation of the membership and no other."""

    generation: int
    spans: tuple[Span, ...]


def corrected(ledger: Ledger, spans: Iterable[Span]) -> Ledger:
    """The ledger with each of `spans` in place of its machine's last span, or at the end if the machine has none."""
    rows = list(ledger.spans)
    for span in spans:
        places = [index for index, row in enumerate(rows) if _machine(row) == _machine(span)]
        if places:
            rows[places[-1]] = span
        else:
            rows.append(span)
    return replace(ledger, spans=tuple(rows))


def correction_to_json(correction: LedgerCorrection) -> dict[str, object]:
    """A JSON-able mapping; times as ISO 8601 with offset."""
    return {"generation": correction.generation, "spans": ledger_to_json(Ledger(spans=correction.spans))}


def correction_from_json(row: Mapping[str, Any]) -> LedgerCorrection:
    """What `correction_to_json` wrote; raises KeyError, TypeError or ValueError on other shapes."""
    return LedgerCorrection(generation=int(row["generation"]), spans=ledger_from_json(row["spans"]).spans)


def _machine(span: Span) -> tuple[int, str]:
    return span.slot, span.instance_id
