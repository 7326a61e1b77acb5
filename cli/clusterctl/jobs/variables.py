"""What the environment of a process can hold: names, and values that Linux starts a process with. Pure."""

from __future__ import annotations

import re

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
MOST_BYTES = 128 * 1024
"""Of `NAME=VALUE` and the NUL after it: Linux starts no process with a longer variable (MAX_ARG_STRLEN, execve(2))."""


def value_problem(name: str, value: str) -> str | None:
    """Why no process can be started with this variable; None if one can."""
    if "\0" in value:
        return "a value has no NUL character"
    if len(f"{name}={value}\0".encode()) > MOST_BYTES:
        return f"Linux has room for {MOST_BYTES // 1024} KiB in a variable"
    return None
