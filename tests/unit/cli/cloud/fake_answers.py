"""AWS's services, which answer from a table: what is not in it is empty."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any  # AWS's answers

from botocore.exceptions import ClientError
from clusterctl.cloud.boundary import Clients, ClientsAt
from clusterctl_infra.region_keys import RegionAccess

from tests.unit.cli.cloud.fake_clients import FakeClients

ACCOUNT = "111122223333"
"""The account that the credentials belong to."""
Answers = Mapping[tuple[str, str, str], list[dict[str, Any]]]
"""Rows by region, call and the key of their list in its answer."""
Refused = Mapping[tuple[str, str], str]
"""AWS's code by service, as the boundary names it, and call."""


@dataclass
class FakeService:
    """One service of one region: every call is answered, and so are its pages."""

    rows: dict[tuple[str, str], list[dict[str, Any]]]
    refused: dict[str, str]
    """AWS's code by call."""
    sent_at: str | None = None
    """AWS's time, as the header `Date` has it."""
    asked: list[str] = field(default_factory=list)
    """Each call, by its name."""

    def get_caller_identity(self) -> dict[str, Any]:
        headers = {} if self.sent_at is None else {"date": self.sent_at}
        return {
            "Account": ACCOUNT,
            "Arn": f"arn:aws:iam::{ACCOUNT}:user/ada",
            "ResponseMetadata": {"HTTPHeaders": headers},
        }

    def get_paginator(self, call: str) -> FakePages:
        return FakePages(getattr(self, call))

    def __getattr__(self, call: str) -> Callable[..., FakeAnswer]:
        rows = {name: found for (own, name), found in self.rows.items() if own == call}

        def answer(**asked: object) -> FakeAnswer:
            self.asked.append(call)
            if call in self.refused:
                raise ClientError({"Error": {"Code": self.refused[call], "Message": "not authorized"}}, call)
            return FakeAnswer(rows)

        return answer


@dataclass
class FakePages:
    """The pages of a call: a single one."""

    ask: Callable[..., FakeAnswer]

    def paginate(self, **asked: object) -> Iterable[FakeAnswer]:
        return (self.ask(**asked),)


class FakeAnswer(dict[str, Any]):
    """An answer whose lists are empty unless a test gives rows."""

    def __missing__(self, name: str) -> list[dict[str, Any]]:
        return []


class AnsweringClients(FakeClients):
    """The services of one region, each of which answers from the table unless a test gives another."""

    def __init__(
        self, answers: Answers, refused: Refused, sent_at: str | None, *, region: str, **services: Any
    ) -> None:
        """`services`: those that do not answer from the table, by the names of the boundary."""
        super().__init__(region=region, **services)
        self.asked: list[str] = []
        """The calls to all services, by name, those of other regions among them."""
        self._answers = answers
        self._refused = refused
        self._sent_at = sent_at

    def account(self) -> str:
        return str(self.caller_identity()["Account"])

    def caller_identity(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.sts.get_caller_identity()
        return answer

    def _service(self, name: str) -> Any:
        if name in self.services:
            return self.services[name]
        region = "us-east-1" if name == "pricing" else self.region
        return FakeService(
            {(call, rows): found for (place, call, rows), found in self._answers.items() if place == region},
            {call: code for (own, call), code in self._refused.items() if own == name},
            self._sent_at,
            self.asked,
        )


def clients_of(
    answers: Answers,
    *,
    region: str = "us-west-2",
    refused: Refused | None = None,
    sent_at: str | None = None,
    **services: Any,
) -> AnsweringClients:
    """Clients of this region that get these answers and refusals; so do those that they make for other regions."""
    return AnsweringClients(answers, refused or {}, sent_at, region=region, **services)


def answering(clients: Clients) -> AnsweringClients:
    """These clients, which `clients_of` made."""
    assert isinstance(clients, AnsweringClients)
    return clients


def always(clients: Clients) -> ClientsAt:
    """A function that gives these clients, whatever region is asked for."""

    def clients_at(rehearsed: RegionAccess | None, *, region: str) -> Clients:
        return clients

    return clients_at
