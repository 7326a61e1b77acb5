"""How full the file systems of a node are."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.probes.probe import Probe, ProbeUnreadable, first_words

KIB_PER_GIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class FileSystem:
    """One mounted file system with blocks of its own."""

    mount: str
    size_gib: float
    free_gib: float
    used_percent: float


def parse_df(text: str) -> tuple[FileSystem, ...]:
    """The rows of `df -P -k`, each device once. Raises ProbeUnreadable if there are none."""
    rows: dict[str, FileSystem] = {}
    for line in text.splitlines():
        words = line.split(None, 5)
        if len(words) < 6 or not (words[1].isdigit() and words[2].isdigit() and words[3].isdigit()):
            continue
        device, size, used, free, _, mount = words
        usable = int(used) + int(free)
        if usable and device not in rows:
            rows[device] = FileSystem(
                mount=mount,
                size_gib=round(int(size) / KIB_PER_GIB, 1),
                free_gib=round(int(free) / KIB_PER_GIB, 1),
                used_percent=round(100 * int(used) / usable, 1),
            )
    if not rows:
        raise ProbeUnreadable(f"df said: {first_words(text)}")
    return tuple(rows.values())


DISK = Probe(
    name="disk",
    meaning="how full file systems are",
    # A dead network mount hangs df, but no other probe. df fails for some file systems; its other rows count.
    command="df -P -k -x tmpfs -x devtmpfs -x squashfs -x efivarfs 2>/dev/null; df -P -k / 2>/dev/null",
    limit_s=8,
    parse=parse_df,
)
