"""Durations on the command line: `10m`, `90s`, `1h30m`."""

from __future__ import annotations

from clusterctl_infra.config.quantities import parse_duration
from clusterctl_infra.errors import UsageError


def seconds(text: str, *, flag: str) -> float:
    """The seconds in the value of a flag. Raises UsageError naming the flag."""
    try:
        return parse_duration(text).total_seconds()
    except ValueError as e:
        raise UsageError(f"{flag} {text}: {e}") from e
