"""A command for a node's shell, before anybody runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FAN_OUT = 256
"""Nodes at a time: a handshake is eight round trips and half a millisecond of CPU, so waiting is what is shared."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """What is to run, and how."""

    line: str
    environment: Mapping[str, str] = field(default_factory=dict)
    is_sudo: bool = False
    timeout_s: float | None = None
