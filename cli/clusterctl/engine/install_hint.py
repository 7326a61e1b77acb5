"""The command that brings the Pulumi engine: the checkout's own, or Pulumi's installer where only the package is."""

from __future__ import annotations

import shlex
from importlib.metadata import version
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[3]


def engine_hint(checkout: Path = _CHECKOUT, *, folder: Path | None = None) -> str:
    """What to type when there is no engine, or one that does not start; `folder`: where, None: where this process is.

    The installer's option is from Pulumi's "Download & install" page (checked 2026-11); the engine and its SDK have one
    version.
    """
    script = checkout / "scripts" / "engine"
    if script.is_file():
        return "scripts/engine" if (folder or Path.cwd()) == checkout else shlex.quote(str(script))
    return f"curl -fsSL https://get.pulumi.com | sh -s -- --version {version('pulumi')}"
