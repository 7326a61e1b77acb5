"""One answer of AWS about what an `up` needs of it, and how answers are shown and judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clusterctl.text.table import render_table

Level = Literal["ok", "warning", "error", "unknown"]
LEVELS = ("error", "warning")
"""What `--fail-on` may name, the worse first."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One answer of AWS, and how serious it is."""

    about: str
    level: Level
    value: str
    limit: str = ""
    helps: str | None = None
    """A command, or what to write."""


def findings_text(findings: Sequence[Finding]) -> str:
    """The findings as a table, in their order."""
    rows = [(row.about, row.level, row.value, row.limit, row.helps or "") for row in findings]
    return render_table(("question", "", "value", "limit", "what helps"), rows)


def findings_json(findings: Sequence[Finding]) -> list[dict[str, object]]:
    """The findings as `--json` prints them."""
    return [dataclasses.asdict(row) for row in findings]


def fails(findings: Sequence[Finding], *, fail_on: str) -> bool:
    """Whether one of the findings is as bad as `fail_on`, or worse."""
    bad = LEVELS[: LEVELS.index(fail_on) + 1]
    return any(row.level in bad for row in findings)
