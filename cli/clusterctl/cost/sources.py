"""Sentences about the source of what a screen shows."""

from __future__ import annotations

from clusterctl_infra.outputs import Inventory


def cloud_name(inventory: Inventory) -> str:
    """`AWS`, and of a rehearsed cluster what stands in for it."""
    return "the rehearsed region" if inventory.rehearsal else "AWS"


def reserved_unknown(inventory: Inventory, trouble: str) -> str:
    """One line: places without a machine are the dearest thing that nobody sees."""
    return f"{cloud_name(inventory)} did not say whether places are reserved ({trouble}): what is known here is counted"
