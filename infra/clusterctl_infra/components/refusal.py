"""How the components say no: every problem on the screen, without a traceback."""

from __future__ import annotations

import pulumi

from clusterctl_infra.errors import ConfigError


class PlanRefused(ConfigError, pulumi.RunError):
    """The engine ends with these lines; nothing more is created."""


def refused(error: ConfigError) -> PlanRefused:
    """The error as one message with its problems and hint, which `pulumi up` prints in full."""
    lines = [error.message, *error.problems]
    if error.hint is not None:
        lines.append(f"  next: {error.hint}")
    return PlanRefused("\n".join(lines), problems=error.problems, hint=error.hint)
