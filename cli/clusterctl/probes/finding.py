"""What is out of the ordinary on a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clusterctl.text.node_set import fold_numbers

Level = Literal["fault", "remark"]
"""A fault ends the sweep with exit code 4; a remark is only shown."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding; findings of one kind on several GPUs are shown together."""

    level: Level
    kind: str
    """`thermal slowdown`: what is wrong."""
    detail: str | None = None
    """`83 °C; median 61 °C`: the value seen."""
    gpu: int | None = None
    next: str | None = None
    """A command that helps."""


def sentences_of(findings: Sequence[Finding]) -> list[str]:
    """`gpu 5: thermal slowdown (83 °C; median 61 °C)`: faults first, one kind on several GPUs in one sentence."""
    groups: dict[tuple[str, bool], list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: finding.level != "fault"):
        groups.setdefault((finding.kind, finding.gpu is not None), []).append(finding)
    return [_sentence(group) for group in groups.values()]


def _sentence(group: Sequence[Finding]) -> str:
    gpus = [finding.gpu for finding in group if finding.gpu is not None]
    details = list(dict.fromkeys(finding.detail for finding in group if finding.detail is not None))
    nexts = list(dict.fromkeys(finding.next for finding in group if finding.next is not None))
    text = f"gpu {fold_numbers(gpus)}: {group[0].kind}" if gpus else group[0].kind
    if details:
        text += f" ({details[0]}{' …' if len(details) > 1 else ''})"
    return f"{text}: {nexts[0]}" if nexts else text
