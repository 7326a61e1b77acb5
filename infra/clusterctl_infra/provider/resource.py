"""The shape of one resource kind of ours: what the engine may ask of it, in plain Python values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol  # `Any`: property values

Properties = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class CheckFailure:
    """An input that cannot be used, and why."""

    property: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Which inputs need a change, and which of them need another resource."""

    changed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the engine runs the resource: in which stack, and whether in a preview."""

    stack_name: str
    preview: bool = False


class ResourceRefused(Exception):
    """The resource cannot be made; the text is for a person."""


class OwnResource(Protocol):
    """Create, change and delete one kind of resource.

    `inputs` may hold `UNKNOWN` only in a preview; secrets arrive revealed. Raises ResourceRefused.
    """

    def check(self, inputs: Properties) -> list[CheckFailure]: ...

    def difference(self, state: Properties, old_inputs: Properties, inputs: Properties) -> Difference: ...

    def create(self, inputs: Properties, place: Place) -> tuple[str, dict[str, Any]]: ...

    def update(self, state: Properties, inputs: Properties, place: Place) -> dict[str, Any]: ...

    def delete(self, state: Properties, place: Place) -> None: ...
