"""A session of boto3's whose services answer from a table: what is not in it is empty."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any  # AWS's answers

from clusterctl.cloud.clients import Clients

ACCOUNT = "111122223333"
"""Whose the credentials are."""
Answers = Mapping[tuple[str, str, str], list[dict[str, Any]]]
"""Rows by region, call and the name that they have in its answer."""


@dataclass
class FakeService:
    """One service of one region: every call is answered, and so are its pages."""

    rows: dict[tuple[str, str], list[dict[str, Any]]]

    def get_caller_identity(self) -> dict[str, str]:
        return {"Account": ACCOUNT}

    def get_paginator(self, call: str) -> FakePages:
        return FakePages(getattr(self, call))

    def __getattr__(self, call: str) -> Callable[..., FakeAnswer]:
        rows = {name: found for (own, name), found in self.rows.items() if own == call}
        return lambda **asked: FakeAnswer(rows)


@dataclass
class FakePages:
    """One page."""

    ask: Callable[..., FakeAnswer]

    def paginate(self, **asked: object) -> Iterable[FakeAnswer]:
        return (self.ask(**asked),)


class FakeAnswer(dict[str, Any]):
    """Its rows, and no others."""

    def __missing__(self, name: str) -> list[dict[str, Any]]:
        return []


@dataclass
class FakeSession:
    """As much of boto3's session as `Clients` wants."""

    answers: Answers = field(default_factory=dict)

    def client(self, service: str, *, region_name: str, **settings: object) -> FakeService:
        return FakeService(
            {(call, name): rows for (region, call, name), rows in self.answers.items() if region == region_name}
        )


def clients_of(answers: Answers, *, region: str = "us-west-2") -> Clients:
    """Clients of this region, and of those made beside them, that hear these answers."""
    clients = Clients(region=region, endpoint_url="http://127.0.0.1:1")
    vars(clients)["session"] = FakeSession(answers)
    return clients
