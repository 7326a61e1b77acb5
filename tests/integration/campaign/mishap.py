"""What goes wrong in a campaign, and when: drawn from a seed. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal, get_args

from tests.integration.kill_campaign import PARTS, Part

Action = Literal["up", "resize", "change", "extend", "job", "down"]
Fault = Literal["kill", "interrupt", "freeze", "partition", "reboot"]
ACTIONS: tuple[Action, ...] = get_args(Action)
FAULTS: tuple[Fault, ...] = get_args(Fault)
WEIGHTS: dict[Fault, int] = {"kill": 5, "interrupt": 2, "freeze": 1, "partition": 1, "reboot": 1}
STEPS = 100
"""So many steps the engine writes, about, in an `up` of two nodes."""
JOB_S = 2.0
MISHAPS_A_LIFE = 9


@dataclass(frozen=True, kw_only=True)
class Mishap:
    """One command of a person, and what befalls it."""

    action: Action
    fault: Fault
    part: Part
    """Of what is killed; of no meaning for the other faults."""
    after_steps: int
    """Of the engine, where the action has one."""
    after_s: float
    """Since the start of a job; beyond the step of an engine."""
    node: int

    @property
    def needs_nodes(self) -> bool:
        """Without any, nothing would happen."""
        return self.action in ("job", "down", "extend") or self.fault in ("freeze", "partition", "reboot")


@dataclass(frozen=True, kw_only=True)
class Life:
    """One cluster from its first `up` to its end, by `down` or left alone until its deadline."""

    mishaps: tuple[Mishap, ...]
    is_abandoned: bool
    is_frozen_at_the_end: bool
    """Of an abandoned one: a node cannot end itself at the deadline, so AWS has to."""


def lives(seed: int, *, runs: int) -> tuple[Life, ...]:
    """`runs` mishaps in as many lives as that takes, abandoned and ended in turn; the same for the same seed."""
    source = random.Random(seed)
    drawn = [_mishap(source) for _ in range(runs)]
    parts = [drawn[start : start + MISHAPS_A_LIFE] for start in range(0, runs, MISHAPS_A_LIFE)]
    return tuple(
        Life(mishaps=tuple(part), is_abandoned=number % 2 == 0, is_frozen_at_the_end=number % 4 == 0)
        for number, part in enumerate(parts)
    )


def _mishap(source: random.Random) -> Mishap:
    action = source.choice(ACTIONS)
    fault = source.choices(FAULTS, weights=[WEIGHTS[one] for one in FAULTS])[0]
    return Mishap(
        action=action,
        fault=fault,
        part="cli" if action == "job" else source.choice(PARTS),
        after_steps=source.randrange(STEPS),
        after_s=source.uniform(0.0, JOB_S if action == "job" else 0.3),
        node=source.randrange(2),
    )
