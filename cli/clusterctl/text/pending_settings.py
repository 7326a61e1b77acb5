"""Words for the settings that a new machine would have and a running one lacks."""

from __future__ import annotations

from collections.abc import Sequence

from clusterctl_infra.replaceable import SPOT_FACT

_NAMES = {
    "access": "access.mode",
    "agent": "a newer agent",
    "root-disk": "root_disk",
    "kms-key": "kms_key",
    "mount-clients": "what mounts need",
    SPOT_FACT: "the maximum price of spot machines",
}


def pending_settings_line(facts: Sequence[str]) -> str:
    """`packages and imds: take effect when a node is replaced`."""
    *most, last = [_NAMES.get(fact, fact) for fact in facts]
    names = f"{', '.join(most)} and {last}" if most else last
    return f"{names}: {'take' if most else 'takes'} effect when a node is replaced"
