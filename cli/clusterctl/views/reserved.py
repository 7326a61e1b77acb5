"""What `status` and `cost` say where AWS does not tell of reservations."""

from __future__ import annotations

from clusterctl_infra.outputs import Inventory

from clusterctl.views.who_tells import who_tells


def reserved_unknown(inventory: Inventory, trouble: str) -> str:
    """One line: places without a machine are the dearest thing that nobody sees."""
    return f"{who_tells(inventory)} did not say whether places are reserved ({trouble}): what is known here is counted"
