#!/usr/bin/env python3
"""Puts the simulated GPUs of a rehearsed machine into a state: `simulate-gpus STATE [ID,…]`, as root.

Standard library only, Python 3.9: it runs in the machine, and changes what the stand-in for nvidia-smi shows.
"""

from __future__ import annotations

import json
import sys
from typing import Any  # rows of JSON

DATA = "/etc/clusterctl-rehearsal/gpus.json"
STATES: dict[str, dict[str, Any]] = {
    "well": {},
    "busy": {"utilization_percent": 97, "temperature_c": 61, "memory_share": 0.89, "power_share": 0.98},
    "held": {"processes": [{"pid": 4711, "process_name": "python3", "used_mib": 1024}]},
    "hot": {
        "utilization_percent": 41,
        "temperature_c": 93,
        "sm_mhz": 1155,
        "slowdowns": ["hw_thermal_slowdown"],
        "throttle_reasons": "0x0000000000000048",
    },
    "ecc": {"ecc_uncorrected": 1, "remapped_pending": "Yes"},
    "link-down": {"nvlinks_down": 1},
    "lost": {"lost": True},
}


def main(argv: list[str], path: str = DATA) -> int:
    """Puts GPUs into the state. The values that they booted with are kept in the data, and `well` restores them."""
    if not argv or argv[0] not in STATES or len(argv) > 2:
        print(f"simulate-gpus STATE [ID,...]: all GPUs without ID; STATE is one of {', '.join(STATES)}")
        return 2
    try:
        with open(path) as file:
            data = json.load(file)
        indices = [str(gpu["index"]) for gpu in data["gpus"]]
        wanted = argv[1].split(",") if len(argv) > 1 else indices
        unknown = [index for index in wanted if index not in indices]
        if unknown:
            print(f"no GPU {', '.join(unknown)}; there are {', '.join(indices)}")
            return 2
        data["gpus"] = [in_state(gpu, argv[0]) if str(gpu["index"]) in wanted else gpu for gpu in data["gpus"]]
        with open(path, "w") as file:
            json.dump(data, file, indent=1)
    except OSError as e:
        print(f"{path}: {e.strerror}")
        return 1
    print(f"gpu {', '.join(wanted)}: simulated as {argv[0]}")
    return 0


def in_state(gpu: dict[str, Any], state: str) -> dict[str, Any]:
    """The GPU as it booted, with the state's changes."""
    booted = gpu.get("as_booted", gpu)
    changed = {**booted, **STATES[state], "as_booted": booted}
    if "memory_share" in changed:
        changed["memory_used_mib"] = int(booted["memory_total_mib"] * changed["memory_share"])
        changed["power_w"] = booted["power_limit_w"] * changed["power_share"]
    return changed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
