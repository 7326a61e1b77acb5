"""An `extend` that was cut off: the stack's config has the new end, some part of the cluster the old one."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import datetime

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.outputs import Inventory

from clusterctl.engine.stack_config import config_values, read_config
from clusterctl.engine.whereabouts import whereabouts_of_cluster
from clusterctl.home import Home
from clusterctl.stack_plan import config_folder


@dataclass(frozen=True, kw_only=True)
class HalfExtend:
    """From which end, and to which: a moment, a budget, or both."""

    before: datetime
    until: datetime | None
    budget_usd: str | None
    """As it was typed."""


def half_extend(inventory: Inventory, home: Home) -> HalfExtend | None:
    """The one that is not finished; None where all is, and where this computer has no config of the cluster."""
    with contextlib.suppress(ClusterctlError, ValueError, OSError):
        where = whereabouts_of_cluster(inventory)
        folder = config_folder(where.stack, home=home, rehearse=where.rehearse)
        values = config_values(read_config(folder / where.stack.config_file.name))
        if (before := values.get("extended-from")) is not None:
            until = values.get("until")
            return HalfExtend(
                before=datetime.fromisoformat(before),
                until=None if until is None else datetime.fromisoformat(until),
                budget_usd=values.get("budget_usd"),
            )
    return None
