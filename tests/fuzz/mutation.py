"""Makes sound JSON and sound text unsound, at random by a seed."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any  # JSON values

EVIL_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**63,
    10**18,
    -(10**300),
    1e308,
    0.5,
    "",
    "²",
    "٣",
    "\0",
    "\x1b[2J",
    "\u202e",
    "x" * 5000,
    "9" * 400,
    10**400,
    "7:²",
    "7:" + "9" * 5000,
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "2026-02-30T00:00:00Z",
    "2026-11-21T10:00:00",
    "~nobody-is-called-so/key",
    [],
    {},
    [[]],
    [None],
    {"x": {}},
    [1, "2", {}],
)
EVIL_BYTES = (
    b"Infinity",
    b"-Infinity",
    b"NaN",
    b"1e999",
    b"9" * 5000,
    b"[" * 3000,
    b'{"a":' * 3000,
    b"\xff",
    b"\0",
    b"",
)


def mutated(sound: Any, random: Random) -> bytes:
    """One unsound text: a value swapped, a field lost, bytes cut out or put in."""
    value = copy.deepcopy(sound)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        value = _with_one_change(value, random)
    data = json.dumps(value).encode()
    kind = random.random()
    if kind < 0.6:
        return data
    at = random.randrange(len(data) + 1)
    if kind < 0.75:
        return data[:at]
    length = random.choice((0, 0, 1, 10))
    return data[:at] + random.choice(EVIL_BYTES) + data[at + length :]


def with_evil_words(text: str, random: Random) -> str:
    """Some words of plain text swapped for others, or a line lost, doubled, or run into the next."""
    lines = text.splitlines(keepends=True)
    for _ in range(random.choice((1, 2, 5))):
        at = random.randrange(len(lines))
        words = lines[at].removesuffix("\n").split(" ")
        words[random.randrange(len(words))] = random.choice(EVIL_WORDS)
        end = "\n" if random.random() < 0.9 else ""
        lines[at] = " ".join(words) + end
        fate = random.random()
        if fate < 0.1:
            del lines[at]
            lines = lines or ["\n"]
        elif fate < 0.2:
            lines.insert(at, lines[at])
    return "".join(lines)


EVIL_WORDS = (
    *("²", "٣", "9" * 400, "9" * 400 + ".5", "9" * 5000, "-1", "nan", "inf", "1e999"),
    *("", "{", "<gpu id=", "\0", "\x1b[2J", "x\n"),
)


def _with_one_change(value: Any, random: Random) -> Any:
    places = list(_places(value))
    if not places:
        return random.choice(EVIL_VALUES)
    holder, key = random.choice(places)
    if isinstance(holder, dict) and random.random() < 0.2:
        del holder[key]
    else:
        holder[key] = copy.deepcopy(random.choice(EVIL_VALUES))
    return value


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in lists and objects, as who holds it and under which key."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in _places(value[key])]
