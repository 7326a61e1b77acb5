"""The table of kinds has all that the program makes: what is not in it, no repair, no `down` and no `reap` finds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from clusterctl.cloud.kinds import KINDS

ROOT = Path(__file__).resolve().parents[4]
COMPONENTS = ROOT / "infra" / "clusterctl_infra" / "components"
GOES_WITH_ITS_ROLE = ("RolePolicy", "RolePolicyAttachment")
NOT_MADE = ("Provider",)
MADE = sorted(
    {
        name
        for path in COMPONENTS.rglob("*.py")
        for name in re.findall(r"\baws\.(?:\w+\.)?([A-Z]\w+)\(", path.read_text(encoding="utf-8"))
    }
    - {*GOES_WITH_ITS_ROLE, *NOT_MADE}
)


def test_the_components_were_read() -> None:
    assert {"Instance", "CapacityReservation", "Eip", "NatGateway", "Schedule"} <= set(MADE)


@pytest.mark.parametrize("name", MADE)
def test_what_the_program_makes_has_a_row(name: str) -> None:
    known = {type.rpartition(":")[2] for kind in KINDS for type in kind.types}
    assert name in known, f"nothing would find and end a {name}: cloud/*_kinds.py"
