"""The region's record of one resource."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any  # property values are whatever JSON can say

Properties = dict[str, Any]

ACCOUNT_ID = "000000000000"
"""No AWS account has this number, so it marks a rehearsal everywhere."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """One resource: what was asked for, what was made, and what only the region needs to know."""

    id: str
    token: str
    """The Pulumi type, such as `aws:ec2/vpc:Vpc`."""
    region: str
    inputs: Properties
    outputs: Properties
    """Everything the provider shows, the inputs included."""
    refs: tuple[str, ...] = ()
    """Ids of the resources it needs."""
    facts: Properties = field(default_factory=dict)
    """Private to the region: an instance's state and machine, a template's versions."""
    created_at: float
    request: str = ""
    """The client token of the request that made it: a repeated request finds it again."""

    @property
    def tags(self) -> dict[str, str]:
        return self.outputs.get("tagsAll") or {}

    @property
    def state(self) -> str:
        """An instance's or reservation's state; `available` for what has none."""
        return str(self.facts.get("state", "available"))

    @property
    def is_live(self) -> bool:
        """Whether it exists, as opposed to being remembered for a while."""
        return self.state not in ("terminated", "cancelled", "deleted", "expired")

    def changed(self, **facts: Any) -> Record:  # JSON values
        """This record with other facts."""
        return dataclasses.replace(self, facts={**self.facts, **facts})


def record_to_json(record: Record) -> Properties:
    """A JSON-able dictionary."""
    return {item.name: getattr(record, item.name) for item in dataclasses.fields(record)}


def record_from_json(row: Properties) -> Record:
    """The record in `row`. Raises TypeError, KeyError if it is not one."""
    return Record(**{**row, "refs": tuple(row["refs"])})
