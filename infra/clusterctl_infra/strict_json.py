"""JSON that somebody else wrote (a node, AWS, a file), read with limits. Standard library only.

Anything that is not what it should be raises one exception, `NotAsExpected`, which names the place and the value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

MOST_BYTES = 4 * 1024 * 1024
MOST_DEPTH = 32
MOST_TEXT = 4096
LARGEST_WHOLE = 2**63 - 1
LARGEST_NUMBER = 1e18
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
_DIGITS = re.compile(r"[0-9]{1,18}")


class NotAsExpected(ValueError):
    """The text or the value is not what its reader expects; the message says where and what was seen."""


def parsed(text: str | bytes, *, most_bytes: int = MOST_BYTES) -> object:
    """The value in a JSON text. Raises NotAsExpected: too long, too deep, no JSON, an infinite number."""
    if len(text) > most_bytes:
        raise NotAsExpected(f"{len(text)} bytes of JSON, at most {most_bytes} are read")
    try:
        value = _DECODER.decode(text if isinstance(text, str) else text.decode("utf-8-sig"))
    except RecursionError as e:
        raise NotAsExpected(f"JSON nested deeper than {MOST_DEPTH}") from e
    except NotAsExpected:
        raise
    except ValueError as e:
        raise NotAsExpected(f"not JSON ({e})") from e
    _refuse_depth(value)
    return value


def parsed_object(text: str | bytes, *, most_bytes: int = MOST_BYTES) -> Fields:
    """The fields of the object in a JSON text. Raises NotAsExpected."""
    return Fields.of(parsed(text, most_bytes=most_bytes))


def whole_number(text: object) -> int | None:
    """The number in a text of 1 to 18 plain digits, such as a tag's; None for anything else, `²` too."""
    return int(text) if isinstance(text, str) and _DIGITS.fullmatch(text) else None


def moment(text: object) -> datetime:
    """The instant in ISO 8601; one without a zone is UTC. Raises NotAsExpected."""
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
        at = at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at
        if at is not None and EARLIEST <= at <= LATEST:
            return at
    except (ValueError, OverflowError):
        pass
    raise NotAsExpected(f"{shortened(text)} is no time such as 2026-01-31T23:59:59+00:00")


def shortened(value: object, most: int = 60) -> str:
    """The value as Python writes it, shortened, for messages."""
    if isinstance(value, str):
        value = value[:most]
    text = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return text if len(text) <= most else text[: most - 1] + "…"


@dataclass(frozen=True)
class Fields:
    """An object's fields, each read as one kind of value; every method raises NotAsExpected naming the field.

    A field that is null counts as one that is not there, as the engine and older programs leave nulls out.
    """

    row: Mapping[str, object]
    place: str = ""

    @classmethod
    def of(cls, value: object, place: str = "") -> Fields:
        """The fields of `value`, which has to be an object."""
        if not isinstance(value, Mapping):
            raise NotAsExpected(f"{place.removesuffix('.') or 'it'} is {shortened(value)}, not an object")
        return cls(value, place)

    def has(self, key: str) -> bool:
        """Whether the field is there, and not null."""
        return self.row.get(key) is not None

    def text(self, key: str, *, most: int = MOST_TEXT) -> str:
        """A text without NUL."""
        value = self._there(key)
        if not isinstance(value, str):
            self._refuse(key, "not a text")
        if len(value) > most:
            self._refuse(key, f"longer than {most} characters")
        if "\0" in value:
            self._refuse(key, "a text with NUL")
        return value

    def text_or_none(self, key: str, *, most: int = MOST_TEXT) -> str | None:
        """A text without NUL, or None where there is none."""
        return self.text(key, most=most) if self.has(key) else None

    def whole(self, key: str, *, low: int = 0, high: int = LARGEST_WHOLE) -> int:
        """A whole number from `low` to `high`; true and false are not numbers. `3.0` is 3, as the engine writes it."""
        value = self._there(key)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            self._refuse(key, f"not a whole number from {low} to {high}")
        return value

    def number(self, key: str, *, low: float = -LARGEST_NUMBER, high: float = LARGEST_NUMBER) -> float:
        """A number from `low` to `high`; true, false, Infinity and NaN are not numbers."""
        value = self._there(key)
        if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
            self._refuse(key, f"not a number from {low:g} to {high:g}")
        return float(value)

    def flag(self, key: str) -> bool:
        """True or false; false where it is not there."""
        value = self.row.get(key)
        if value is not None and not isinstance(value, bool):
            self._refuse(key, "neither true nor false")
        return bool(value)

    def moment(self, key: str) -> datetime:
        """An instant in ISO 8601; one without a zone is UTC."""
        try:
            return moment(self._there(key))
        except NotAsExpected as e:
            raise NotAsExpected(f"{self.place}{key}: {e}") from e

    def moment_or_none(self, key: str) -> datetime | None:
        """An instant in ISO 8601, or None where there is none."""
        return self.moment(key) if self.has(key) else None

    def fields(self, key: str) -> Fields:
        """The fields of an object."""
        return Fields.of(self._there(key), f"{self.place}{key}.")

    def fields_or_none(self, key: str) -> Fields | None:
        """The fields of an object, or None where there is none, or an empty one."""
        return self.fields(key) if self.row.get(key) else None

    def objects(self, key: str, *, most: int = 10_000) -> Iterator[Fields]:
        """The objects in a list; none where it is not there."""
        for number, value in enumerate(self._listed(key, most)):
            yield Fields.of(value, f"{self.place}{key}[{number}].")

    def texts(self, key: str, *, most: int = 1000) -> tuple[str, ...]:
        """The texts in a list; none where it is not there."""
        values = self._listed(key, most)
        rows = Fields({str(number): value for number, value in enumerate(values)}, f"{self.place}{key}.")
        return tuple(rows.text(str(number)) for number in range(len(values)))

    def numbers(self, key: str, *, count: int) -> tuple[float, ...]:
        """The numbers in a list, which has to have `count` of them."""
        values = self._listed(key, count)
        if len(values) != count:
            self._refuse(key, f"a list of {len(values)}, not of {count}")
        rows = Fields({str(number): value for number, value in enumerate(values)}, f"{self.place}{key}.")
        return tuple(rows.number(str(number)) for number in range(count))

    def lists_of_texts(self, key: str, *, most: int) -> Iterator[tuple[str, ...]]:
        """The lists of texts in a list."""
        rows = {str(number): value for number, value in enumerate(self._listed(key, most))}
        for number in rows:
            yield Fields(rows, f"{self.place}{key}.").texts(number, most=most)

    def _listed(self, key: str, most: int) -> list[object]:
        value = self.row.get(key)
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            self._refuse(key, "not a list")
        if len(value) > most:
            self._refuse(key, f"a list of {len(value)}, more than {most}")
        return list(value)

    def _there(self, key: str) -> object:
        if not self.has(key):
            raise NotAsExpected(f"{self.place}{key} is missing")
        return self.row[key]

    def _refuse(self, key: str, why: str) -> NoReturn:
        raise NotAsExpected(f"{self.place}{key} is {shortened(self.row.get(key))}: {why}")


def _whole(digits: str) -> int:
    if len(digits) > len(str(LARGEST_WHOLE)):
        raise NotAsExpected(f"a number of {len(digits)} digits")
    return int(digits)


def _number(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise NotAsExpected(f"the number {shortened(digits)} has no bounds")
    return value


def _refuse_constant(word: str) -> NoReturn:
    raise NotAsExpected(f"{word} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_whole, parse_float=_number)


def _refuse_depth(value: object) -> None:
    """Raises NotAsExpected for a value nested too deep; goes level by level, as recursion would fail on such input."""
    level = [value]
    for _ in range(MOST_DEPTH):
        lists = [values for values in level if isinstance(values, list)]
        objects = [values for values in level if isinstance(values, dict)]
        level = [item for values in lists for item in values] + [item for values in objects for item in values.values()]
        if not level:
            return
    raise NotAsExpected(f"JSON nested deeper than {MOST_DEPTH}")
