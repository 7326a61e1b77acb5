"""A node's clock: what it shows, and what its own time service says about it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterctl.probes.probe import Probe, ProbeUnreadable, first_words


@dataclass(frozen=True, kw_only=True)
class ClockReading:
    """Seconds; a positive offset is a clock that is ahead."""

    shown_s: float
    """Unix time on the node while the probe ran."""
    service_offset_s: float | None
    """From the node's time servers, as chrony measures it; None without chrony."""
    is_synchronised: bool | None


def parse_clock(text: str) -> ClockReading:
    """Reads what `date` and `chronyc tracking` print. Raises ProbeUnreadable."""
    shown = re.search(r"^now (\d+\.\d+)$", text, re.MULTILINE)
    if shown is None:
        raise ProbeUnreadable(f"clock: {first_words(text)}")
    offset = re.search(r"^System time\s*: (\d+\.\d+) seconds (slow|fast) of NTP time", text, re.MULTILINE)
    leap = re.search(r"^Leap status\s*: (.+)$", text, re.MULTILINE)
    sign = -1.0 if offset is not None and offset[2] == "slow" else 1.0
    return ClockReading(
        shown_s=float(shown[1]),
        service_offset_s=None if offset is None else sign * float(offset[1]),
        is_synchronised=None if leap is None else leap[1].strip() != "Not synchronised",
    )


CLOCK = Probe(
    name="clock",
    meaning="the clock's offset",
    command='echo "now $(date +%s.%N)"; command -v chronyc >/dev/null && chronyc -n tracking 2>/dev/null; true',
    limit_s=5,
    parse=parse_clock,
)
