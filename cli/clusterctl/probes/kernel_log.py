"""What the kernel says of GPUs and memory since the node booted: Xid and SXid events, processes it killed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterctl.probes.gpu_xml import bus_key
from clusterctl.probes.probe import Probe

UNREADABLE = "@@unreadable"

# The journal first, since dmesg's ring buffer forgets; sudo -n never asks for a password.
COMMAND = f"""
root=; sudo -n true 2>/dev/null && root='sudo -n'
{{ $root journalctl -k -b -q --no-pager -o short-unix || $root dmesg || echo {UNREADABLE}; }} 2>/dev/null |
  grep -E '{UNREADABLE}|Xid|NVIDIA GPU [0-9a-f]|fallen off the bus|Out of memory: Killed' | tail -n 400
true
"""

_XID = re.compile(r"\b(S?Xid) \((?:PCI:)?([^)]*)\): (\d+)(?:, (.*))?")
# If a GPU is gone before the driver has set it up, there is no Xid number, and the message may have three lines (nv.c
# of NVIDIA's open kernel modules; r570 in NVIDIA/NVSentinel issue 155; checked 2026-11-22).
_ADDRESSED = re.compile(r"NVRM: The NVIDIA GPU ([0-9a-fA-F:.]+)")
_OFF_THE_BUS = "fallen off the bus and is not responding"
_OFF_THE_BUS_XID = 79
_PROGRAM = re.compile(r"\bname=([^,<\s]+)")
_KILLED = re.compile(r"Out of memory: Killed process (\d+) \(([^)]*)\)")


@dataclass(frozen=True, kw_only=True)
class XidEvent:
    """A GPU's error number (or an NVSwitch's, `is_switch`), and how many times it was logged."""

    code: int
    bus_id: str | None
    count: int
    message: str
    """The text of the last one."""
    is_switch: bool = False

    @property
    def program(self) -> str | None:
        """The name of the process that had the GPU, where the driver logs it."""
        match = _PROGRAM.search(self.message)
        return None if match is None else match[1]


@dataclass(frozen=True, kw_only=True)
class KernelReading:
    """What the kernel has logged since the node booted."""

    xids: tuple[XidEvent, ...] = ()
    killed: tuple[str, ...] = ()
    """Names of processes that were killed because memory had run out."""
    is_readable: bool = True


def parse_kernel_log(text: str) -> KernelReading:
    """The events in journal or dmesg lines."""
    events: dict[tuple[bool, int, str | None], list[str]] = {}
    killed: dict[str, str] = {}
    addressed: str | None = None
    for line in text.splitlines():
        if match := _ADDRESSED.search(line):
            addressed = match[1]
        if match := _XID.search(line):
            key = (match[1] == "SXid", int(match[3]), bus_key(match[2]))
            events.setdefault(key, []).append(match[4] or "")
        elif _OFF_THE_BUS in line:
            key = (False, _OFF_THE_BUS_XID, bus_key(addressed or ""))
            events.setdefault(key, []).append("GPU has fallen off the bus and is not responding to commands")
        elif match := _KILLED.search(line):
            killed[match[1]] = match[2]
    return KernelReading(
        xids=tuple(
            XidEvent(code=code, bus_id=bus, count=len(messages), message=messages[-1], is_switch=is_switch)
            for (is_switch, code, bus), messages in events.items()
        ),
        killed=tuple(killed.values()),
        is_readable=UNREADABLE not in text,
    )


KERNEL = Probe(
    name="kernel",
    meaning="the kernel's log since boot: Xid errors, processes killed for memory",
    command=COMMAND,
    limit_s=15,
    parse=parse_kernel_log,
)
