"""Which new end the words behind `clusterctl extend` mean. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from clusterctl_infra.config.quantities import parse_dollars, parse_duration
from clusterctl_infra.errors import UsageError

from clusterctl.instant import parse_instant
from clusterctl.lifecycle.new_deadline import Wish

LEAST_BUDGET_USD = 0.01
T = TypeVar("T")


def typed_wish(longer: str | None, until: str | None, budget: str | None, *, now: datetime) -> Wish:
    """What a person wants; None: not typed. Raises UsageError for words that mean no end, and for two of them."""
    if longer is None and until is None and budget is None:
        raise UsageError("extend by how much? A time, --until or --budget", hint="clusterctl extend 2h")
    if longer is not None and until is not None:
        raise UsageError(f"both {longer} and --until {until}: say one", hint="clusterctl extend --help")
    return Wish(
        by=_read(longer, parse_duration, "TIME"),
        until=_read(until, lambda text: parse_instant(text, now=now), "--until"),
        budget_usd=_read(budget, _whole_cents, "--budget"),
    )


def _read(text: str | None, parse: Callable[[str], T], name: str) -> T | None:
    try:
        return None if text is None else parse(text)
    except ValueError as e:
        raise UsageError(f"{name} {text!r}: {e}", hint="clusterctl extend --help") from e


def _whole_cents(text: str) -> float:
    """The amount in `text`, to the cent. Raises ValueError."""
    if re.fullmatch(r"-?\d+(\.\d+)?", text.strip(), re.ASCII) and float(text) < LEAST_BUDGET_USD:
        raise ValueError("a budget is at least one cent; clusterctl down ends the cluster now")
    return round(parse_dollars(text), 2)
