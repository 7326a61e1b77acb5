"""One call of an AWS API, and the type of the functions that answer such calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.region import Region


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request to an AWS API. `region_name`: the region that the request is signed for."""

    operation: str
    parameters: Mapping[str, Any]
    region_name: str
    region: Region

    def records(self, token: str) -> list[Record]:
        """Every record of a type in the call's region, oldest first; ended ones too."""
        return [row for row in self.region.store.all(token) if row.region == self.region_name]

    def find(self, token: str, id: str) -> Record | None:
        """The record with the id in the call's region, an ended one too; None if there is none."""
        found = self.region.store.get(token, id)
        return found if found is not None and found.region == self.region_name else None


Handler = Callable[[Call], dict[str, Any]]


def tag_list(tags: dict[str, str]) -> list[dict[str, str]]:
    """Tags as every AWS API writes them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]
