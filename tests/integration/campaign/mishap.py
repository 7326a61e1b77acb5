"""What goes wrong in a campaign, and when: drawn from a seed. Pure."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, replace
from typing import Literal, get_args

from tests.integration.kill_campaign import PARTS, Part

Action = Literal["up", "resize", "change", "replace", "extend", "job", "down"]
Fault = Literal["kill", "interrupt", "freeze", "partition", "unplug", "reboot", "death", "taken back"]
Ending = Literal["forsaken", "deadline", "down"]
ACTIONS: tuple[Action, ...] = get_args(Action)
FAULTS: tuple[Fault, ...] = get_args(Fault)
"""Drawn for any machine, but for the last: AWS takes back only spot machines."""
ENDINGS: tuple[Ending, ...] = get_args(Ending)
WEIGHTS: dict[Fault, int] = {
    "kill": 6,
    "interrupt": 2,
    "freeze": 1,
    "partition": 1,
    "unplug": 1,
    "reboot": 1,
    "death": 1,
    "taken back": 0,
}
STEPS: dict[Action, int] = {"up": 100, "resize": 110, "change": 80, "replace": 90, "extend": 80, "job": 1, "down": 60}
"""About how many steps the engine logs; for `up`, when it makes everything."""
JOB_S = 2.0
HEALS_AFTER_S = (1.0, 1.0, 8.0)
"""A short one is sat out; a long one is longer than some deadlines of a connection."""
MISHAPS_A_LIFE = 9
SPOT_EVERY = 4
"""One life of so many is on spot machines; with three endings in turn, it meets each of them."""
TAKEN_BACK_EVERY = 3
"""Of a life on spot machines, this mishap of so many is that AWS takes one back."""


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
    heals_after_s: float
    """Of a node that stands still or is cut off; of a spot machine, the time from its notice to its end."""
    node: int

    @property
    def needs_nodes(self) -> bool:
        """Without any, nothing would happen."""
        return self.action not in ("up", "resize", "change") or self.fault not in ("kill", "interrupt")


@dataclass(frozen=True, kw_only=True)
class Life:
    """One cluster from its first `up` to its end."""

    number: int
    mishaps: tuple[Mishap, ...]
    """The last one of a forsaken life befalls the `up` of a new run, and nobody comes back after it."""
    ending: Ending
    """Forsaken as the last mishap left it; whole, and left alone until its deadline; or ended by `down --all`."""
    is_frozen_at_the_end: bool
    """Of one that is whole at its deadline: a node cannot end itself, so AWS has to."""
    is_spot: bool
    """On machines that AWS takes back now and then."""
    has_storage: bool
    """A file system, which `down` keeps and `down --all` ends, and `reap` ends when it is named."""


def lives(seed: int, *, runs: int, a_life: int = MISHAPS_A_LIFE) -> tuple[Life, ...]:
    """`runs` mishaps, so many `a_life`, with the endings in turn; the same for the same seed."""
    source = random.Random(seed)
    drawn = [_mishap(source) for _ in range(runs)]
    parts = [drawn[start : start + a_life] for start in range(0, runs, a_life)]
    return tuple(_life(number, part) for number, part in enumerate(parts))


def _life(number: int, mishaps: list[Mishap]) -> Life:
    ending = ENDINGS[number % len(ENDINGS)]
    if ending == "forsaken":
        mishaps = [*mishaps[:-1], _of_the_last_up(mishaps[-1])]
    rounds = number // len(ENDINGS)
    is_spot = number % SPOT_EVERY == SPOT_EVERY // 2
    if is_spot:
        mishaps = [*map(_on_spot, range(len(mishaps) - 1), mishaps), mishaps[-1]]
    return Life(
        number=number,
        mishaps=tuple(mishaps),
        ending=ending,
        is_frozen_at_the_end=rounds % 2 == 0,
        is_spot=is_spot,
        # A forsaken one that had not begun its new run is down on purpose, with its data: nobody may reap that.
        has_storage=rounds % 2 == 1 and ending != "forsaken",
    )


def drawn_by(lived: tuple[Life, ...]) -> str:
    """Tells these lives from those that another seed, or another version of this script, draws."""
    return hashlib.sha256(repr(lived).encode()).hexdigest()[:12]


def _on_spot(place: int, mishap: Mishap) -> Mishap:
    return replace(mishap, fault="taken back") if place % TAKEN_BACK_EVERY == 0 else mishap


def _of_the_last_up(mishap: Mishap) -> Mishap:
    """The mishap as one of a command: most `up`s recover from a node's fault, and the life would not be forsaken."""
    fault: Fault = mishap.fault if mishap.fault in ("kill", "interrupt") else "kill"
    part: Part = mishap.part if mishap.action != "job" else "both"
    return replace(mishap, action="up", fault=fault, part=part, after_steps=mishap.after_steps % STEPS["up"])


def _mishap(source: random.Random) -> Mishap:
    action = source.choice(ACTIONS)
    fault = source.choices(FAULTS, weights=[WEIGHTS[name] for name in FAULTS])[0]
    return Mishap(
        action=action,
        fault=fault,
        part="cli" if action == "job" else source.choice(PARTS),
        after_steps=source.randrange(STEPS[action]),
        after_s=source.uniform(0.0, JOB_S if action == "job" else 0.3),
        heals_after_s=source.choice(HEALS_AFTER_S),
        node=source.randrange(2),
    )
