"""PCI addresses of GPUs, which every tool writes another way."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})", re.IGNORECASE)


def bus_key(text: str) -> str | None:
    """`0000:9b:00` for `00000000:9B:00.0`, `GPU0000:9B:00.0` and `PCI:0000:9b:00`; None without an address."""
    match = _ADDRESS.search(text)
    return None if match is None else f"{int(match[1], 16):04x}:{match[2]}:{match[3]}".lower()
