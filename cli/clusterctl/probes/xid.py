"""What NVIDIA's Xid numbers mean, and what helps.

Classes: AWS's GPU health check for r590 (awsome-distributed-training, checks/0-nvidia-smi-check.sh, 2026-05); names:
NVIDIA's Xid catalog (docs.nvidia.com/deploy/xid-errors), both checked 2026-11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Remedy = Literal["replace", "reset", "program", "restart", "none"]
"""`replace`: the machine; `reset`: that GPU; `program`: the job's own fault; `restart`: the program, which the GPU's
error hit; `none`: for information only."""


@dataclass(frozen=True, kw_only=True)
class XidKind:
    """One number's meaning; the name is None where the driver's own message must do."""

    name: str | None
    remedy: Remedy


XIDS: dict[int, XidKind] = {
    13: XidKind(name="graphics engine exception", remedy="program"),
    31: XidKind(name="GPU memory page fault", remedy="program"),
    43: XidKind(name="GPU stopped processing", remedy="program"),
    45: XidKind(name="channels cleaned up after a program ended", remedy="none"),
    48: XidKind(name="double bit ECC error", remedy="reset"),
    54: XidKind(name="auxiliary power is missing", remedy="replace"),
    62: XidKind(name="internal microcontroller halted", remedy="reset"),
    63: XidKind(name="a row was remapped", remedy="none"),
    64: XidKind(name="a row could not be remapped", remedy="reset"),
    74: XidKind(name="NVLink error", remedy="reset"),
    79: XidKind(name="fallen off the bus", remedy="replace"),
    92: XidKind(name="many corrected ECC errors", remedy="none"),
    94: XidKind(name="contained ECC error", remedy="restart"),
    95: XidKind(name="uncontained ECC error", remedy="reset"),
    119: XidKind(name="the GPU's system processor does not answer", remedy="reset"),
    120: XidKind(name="the GPU's system processor failed", remedy="reset"),
    121: XidKind(name="chip-to-chip link error, corrected", remedy="none"),
    140: XidKind(name="unrecovered ECC error", remedy="reset"),
    154: XidKind(name="recovery action changed", remedy="none"),
    **{code: XidKind(name=None, remedy="reset") for code in (109, 110, 136, 143, 155, 156, 158)},
    **{code: XidKind(name=None, remedy="replace") for code in (151, 168)},
    **{code: XidKind(name=None, remedy="none") for code in range(144, 151)},
    126: XidKind(name=None, remedy="program"),
}
UNKNOWN = XidKind(name=None, remedy="none")


def xid_kind(code: int) -> XidKind:
    """The number's meaning; without a name and a remedy if it is not known."""
    return XIDS.get(code, UNKNOWN)
