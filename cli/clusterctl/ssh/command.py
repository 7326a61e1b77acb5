"""A command for a node's shell, before anybody runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Command:
    """What is to run, and how."""

    line: str
    environment: Mapping[str, str] = field(default_factory=dict)
    is_sudo: bool = False
    timeout_s: float | None = None
