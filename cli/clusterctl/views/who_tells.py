"""Whose word a screen passes on."""

from __future__ import annotations

from clusterctl_infra.outputs import Inventory


def who_tells(inventory: Inventory) -> str:
    """`AWS`, and of a rehearsed cluster what stands in for it."""
    return "the rehearsed region" if inventory.rehearsal else "AWS"
