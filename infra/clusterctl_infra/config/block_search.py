"""`capacity_block:` in cluster.yaml: the block that was bought, or what one has to be like for `up` to buy it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any  # Any: a value before it is checked, a JSON Schema

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from clusterctl_infra.config.fields import (
    Dollars,
    NodeCount,
    ReservationId,
    Text,
    check_reservation_id,
    check_text,
    check_whole,
)

DAY_H, WEEK_H = 24, 168
LONGEST_BY_DAYS_H, LONGEST_H = 14 * DAY_H, 182 * DAY_H
MOST_INSTANCES = 64
"""EC2 API, DescribeCapacityBlockOfferings (2026-11): days up to 14, then weeks up to 182 days; 64 machines a block."""


def hours_problem(hours: int) -> str | None:
    """Why AWS sells no block of so many hours; None: it does."""
    if hours > 0 and (
        (hours % DAY_H == 0 and hours <= LONGEST_BY_DAYS_H) or (hours % WEEK_H == 0 and hours <= LONGEST_H)
    ):
        return None
    step = DAY_H if hours <= LONGEST_BY_DAYS_H else WEEK_H
    near = min(LONGEST_H, max(DAY_H, -(-hours // step) * step))
    return (
        f"AWS sells whole days up to {LONGEST_BY_DAYS_H} h, then whole weeks up to {LONGEST_H} h (did you mean {near}?)"
    )


def check_hours(value: object) -> int:
    """A duration that AWS sells, in hours. Raises ValueError."""
    hours = check_whole(value)
    problem = hours_problem(hours)
    if problem is not None:
        raise ValueError(problem)
    return hours


def check_start(value: object) -> str:
    """An instant in ISO 8601, in UTC; a text without a zone is UTC. Raises ValueError."""
    text = check_text(value).strip()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as e:
        raise ValueError("not a moment such as 2026-12-01T08:00Z") from e
    if re.fullmatch(r"[\d-]{8,10}", text, re.ASCII):
        raise ValueError("a day without a time; write a moment such as 2026-12-01T08:00Z")
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return zoned.astimezone(UTC).isoformat()


class BlockSearch(BaseModel):
    """What `clusterctl up` looks for and, once you agree to the sum, buys."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    hours: Annotated[int, BeforeValidator(check_hours), WithJsonSchema({"type": "integer", "minimum": DAY_H})] = Field(
        description="How long it lasts at least: whole days up to 336, then whole weeks up to 4368.", examples=[24]
    )
    nodes: NodeCount | None = Field(
        default=None, description="How many machines it holds; left out: as many as the cluster has.", examples=[4]
    )
    gpus: Text | None = Field(
        default=None,
        description="GPUs of each machine; left out: those of the cluster. The nodes' own type has to fit.",
        examples=["h100:8"],
    )
    start: Annotated[str, BeforeValidator(check_start)] | None = Field(
        default=None,
        description="The earliest time at which it may begin; left out: now. The cheapest block is bought, however "
        "late it begins.",
        examples=["2026-12-01T08:00Z"],
    )
    max_usd: Dollars | None = Field(
        default=None,
        description="The most that it may cost in all; a more expensive one is not bought.",
        examples=[6000],
    )

    @property
    def starts_from(self) -> datetime | None:
        """The moment of `start`."""
        return None if self.start is None else datetime.fromisoformat(self.start)


class BlockConfig(BaseModel):
    """A capacity block: exactly one of `id` and `find`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    id: ReservationId | None = Field(
        default=None, description="The id of a block that was bought.", examples=["cr-0a1b2c3d4e5f67890"]
    )
    find: BlockSearch | None = Field(
        default=None,
        description="`clusterctl up` buys the cheapest that fits, after a question with the sum; docs/adopted.md.",
    )

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"id": check_reservation_id(value)}
        if isinstance(value, dict) and len(set(value) & {"id", "find"}) != 1:
            raise ValueError("write one of id and find, or cr-… alone")
        return value


def or_text(schema: dict[str, Any]) -> None:
    """Makes the JSON Schema accept the id alone, too."""
    schema["anyOf"] = [{"type": "string", "pattern": "^cr-[0-9a-f]{8,17}$"}, *schema["anyOf"]]
