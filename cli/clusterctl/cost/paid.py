"""The paid time of a machine, or of a reserved place without one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class Paid:
    """From when to when something was paid for, and at what rate."""

    slot: int | None
    instance_id: str | None
    """None: an empty place."""
    started_at: datetime
    ended_at: datetime | None
    """None: no end is known."""
    is_start_seen: bool
    """AWS said it; else it is assumed."""
    is_end_seen: bool
    usd_per_hour: float | None
    is_in_account: bool = True
    instance_type: str | None = None
    """None: nobody saw the machine."""
