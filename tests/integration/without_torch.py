"""A cache like this computer's but for torch, which takes each process that loads it 2 s of the processor.

Nodes of rehearsals that use it have no torch, as on a computer where `scripts/torch` never ran: functions are then
started by us and not by torchrun, with the same variables.
"""

from __future__ import annotations

import os
from pathlib import Path

from clusterctl_bootstrap.kept_texts import cache_folder


def cache_without_torch(folder: Path) -> str:
    """The value of CLUSTERCTL_CACHE: `folder`, made here, with a link to everything else that is in the cache."""
    folder.mkdir()
    for path in cache_folder(os.environ).iterdir():
        if path.name != "torch":
            (folder / path.name).symlink_to(path)
    return str(folder)
