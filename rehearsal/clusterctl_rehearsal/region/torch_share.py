"""torch in machines: the copy that scripts/torch made, bound read-only, never unpacked once per machine."""

from __future__ import annotations

from pathlib import Path

IN_MACHINES = "/opt/torch"


def torch_share(cache: Path) -> dict[str, str]:
    """Host folder → its place in machines; empty while there is no torch. Of several copies, the last by name."""
    copies = sorted(folder for folder in (cache / "torch").glob("*-cp*") if folder.is_dir())
    return {str(copies[-1]): IN_MACHINES} if copies else {}
