"""What other machines and other users say: read within limits, so that nothing they send can stop its reader."""

import json
import math
from typing import Any, Union

LONGEST_NUMBER = 18
"""The most digits of a number: nothing that is counted here has more, and parsing thousands takes long."""
LONGEST_SHOWN = 300


def parsed(data: Union[bytes, str], longest: int, most_brackets: int) -> Any:
    """The JSON value. Raises ValueError where it is longer or deeper than allowed, or holds no finite number."""
    if len(data) > longest:
        raise ValueError("longer than %d bytes" % longest)
    text = data if isinstance(data, str) else data.decode()
    if text.count("[") + text.count("{") > most_brackets:  # the parser calls itself for each one that is open
        raise ValueError("more than %d lists and objects" % most_brackets)
    return json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_finite)


def is_whole(value: Any, least: int, most: int) -> bool:
    """Whether it is a whole number from `least` to `most`; `true` is not one."""
    return type(value) is int and least <= value <= most


def is_seconds(value: Any, most: float) -> bool:
    """Whether it is a number from 0 to `most`."""
    return type(value) in (int, float) and 0 <= value <= most


def is_text(value: Any, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest


def printable(text: Any) -> str:
    """One line for a terminal: a `?` for what would move its cursor or change its colours, and not too long."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(text)[:LONGEST_SHOWN])


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError("a number of %d digits" % len(digits))
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("%s is no finite number" % digits[:LONGEST_NUMBER])
    return number
