"""Sentences about the source of what a screen shows."""

from __future__ import annotations

from clusterctl_infra.outputs import Inventory


def cloud_name(inventory: Inventory) -> str:
    """`AWS`, or for a rehearsed cluster `the rehearsed region`."""
    return "the rehearsed region" if inventory.rehearsal else "AWS"


def reserved_unknown(inventory: Inventory, trouble: str) -> str:
    """The line for when AWS did not say whether it holds places: empty ones bill in full, and nobody sees them."""
    return (
        f"{cloud_name(inventory)} did not say whether places are reserved ({trouble}), so only what this computer "
        "knows is counted"
    )
