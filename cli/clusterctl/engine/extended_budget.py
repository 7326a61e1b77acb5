"""The budget that `extend` gave a cluster: it holds for all its runs, and goes when the cluster does. Pure.

It is written where a person sets one, `clusterctl:budget_usd` in the stack's config. The earlier value is kept beside
it, so that the next cluster does not get a budget that was agreed to for this one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

KEY = "extended-budget"
BUDGET = "budget_usd"


def extended(values: Mapping[str, str], budget_usd: float) -> dict[str, str | None]:
    """What an `extend` to this budget writes over these `values` of the config."""
    to, before = f"{budget_usd:.2f}", values.get(BUDGET)
    noted = _noted(values)
    was = noted[1] if noted is not None and noted[0] == before else before
    return {BUDGET: to, KEY: json.dumps({"to": to, "from": was})}


def taken_back(values: Mapping[str, str]) -> dict[str, str | None]:
    """The changes that take back what an `extend` wrote into the config; a budget that a person set since stays."""
    noted = _noted(values)
    if noted is None:
        return {}
    to, before = noted
    return {KEY: None} if values.get(BUDGET) != to else {BUDGET: before, KEY: None}


def _noted(values: Mapping[str, str]) -> tuple[str, str | None] | None:
    """What an `extend` wrote, and what stood there before."""
    try:
        row = json.loads(values[KEY])
        return str(row["to"]), None if row["from"] is None else str(row["from"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
