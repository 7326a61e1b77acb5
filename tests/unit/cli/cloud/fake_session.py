"""A session of boto3's whose services answer from a table: what is not in it is empty."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any  # AWS's answers

from botocore.exceptions import ClientError
from clusterctl.cloud.boundary import Clients, ClientsAt
from clusterctl.cloud.clients import AwsClients
from clusterctl_infra.region_keys import RegionAccess

ACCOUNT = "111122223333"
"""The account that the credentials belong to."""
Answers = Mapping[tuple[str, str, str], list[dict[str, Any]]]
"""Rows by region, call and the key of their list in its answer."""
Refused = Mapping[tuple[str, str], str]
"""AWS's code by service and call."""


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


@dataclass
class FakeSession:
    """As much of botocore's session as `Clients` wants."""

    answers: Answers = field(default_factory=dict)
    refused: Refused = field(default_factory=dict)
    sent_at: str | None = None
    asked: list[str] = field(default_factory=list)
    """The calls to all its services, by name."""

    def get_credentials(self) -> None:
        """Nobody says when they end."""

    def create_client(self, service: str, *, region_name: str, **settings: object) -> FakeService:
        return FakeService(
            {(call, name): rows for (region, call, name), rows in self.answers.items() if region == region_name},
            {call: code for (own, call), code in self.refused.items() if own == service},
            self.sent_at,
            self.asked,
        )


def clients_of(
    answers: Answers, *, region: str = "us-west-2", refused: Refused | None = None, sent_at: str | None = None
) -> AwsClients:
    """Clients of this region that get these answers and refusals; so do those that they make for other regions."""
    clients = AwsClients(region=region, endpoint_url="http://127.0.0.1:1")
    vars(clients)["session"] = FakeSession(answers, refused or {}, sent_at)
    return clients


def always(clients: Clients) -> ClientsAt:
    """A function that gives these clients, whatever region is asked for."""

    def clients_at(rehearsed: RegionAccess | None, *, region: str) -> Clients:
        return clients

    return clients_at
