"""NVLinks that are up and down, as `nvidia-smi nvlink -s` reports them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.probes.probe import Probe

_GPU = re.compile(r"^GPU (\d+):")
_LINK = re.compile(r"^\s*Link (\d+): (.+)$")


@dataclass(frozen=True, kw_only=True)
class Links:
    """One GPU's links."""

    up: int
    down: int


def parse_nvlinks(text: str) -> Mapping[int, Links]:
    """GPU index → its links; GPUs without any are left out."""
    states: dict[int, list[bool]] = {}
    gpu = None
    for line in text.splitlines():
        if match := _GPU.match(line):
            gpu = int(match[1])
        elif (match := _LINK.match(line)) and gpu is not None:
            states.setdefault(gpu, []).append("inactive" not in match[2].lower())
    return {gpu: Links(up=sum(up), down=len(up) - sum(up)) for gpu, up in states.items()}


NVLINK = Probe(
    name="nvlink",
    meaning="NVLinks up and down",
    command="command -v nvidia-smi >/dev/null || exit 0; nvidia-smi nvlink -s",
    limit_s=15,
    parse=parse_nvlinks,
)
