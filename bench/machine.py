"""The machine that the figures were measured on, in one line."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe_machine() -> str:
    """Processor, cores, memory, kernel and Python, e.g. for the head of a table."""
    cpu = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor() or "unknown processor",
    )
    kib = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return (
        f"{os.cpu_count()} cores of {cpu}, {kib / 1024**2:.0f} GiB, Linux {platform.release().split('-')[0]}, "
        f"Python {platform.python_version()}"
    )


def _lines(path: str) -> list[str]:
    return Path(path).read_text(errors="replace").splitlines()
