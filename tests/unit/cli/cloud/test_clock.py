"""This computer's clock against AWS's, by the date of an answer, without a network: botocore takes canned answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any  # what botocore hands to its handlers

import pytest
from botocore.awsrequest import AWSResponse
from clusterctl.cloud.answers import date_of
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.clients import AwsClients
from clusterctl.cloud.clock import clock_skew, refuse_wrong_clock, wrong_clock
from clusterctl_infra.errors import CloudError

NOW = datetime(2026, 11, 21, 20, 0, 0, tzinfo=UTC)
IDENTITY = b"""<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"""


class Body:
    """An answer's body, read once."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self) -> list[bytes]:
        content, self._content = self._content, b""
        return [content]


def clients_that_hear(date: str | None, *, status: int = 200, code: str | None = None) -> Clients:
    """Clients whose requests all get an answer with this date, status and code, and are never sent."""
    clients = AwsClients(region="us-west-2", endpoint_url="http://127.0.0.1:9")
    error = f"<ErrorResponse><Error><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"
    body = IDENTITY if code is None else error.encode()
    headers: Any = {} if date is None else {"date": date}

    def answer(**_: Any) -> AWSResponse:
        return AWSResponse("http://127.0.0.1:9", status, headers, Body(body))

    clients.sts.meta.events.register("before-send.sts", answer)
    return clients


@pytest.mark.parametrize(
    ("date", "ahead_s"),
    [
        ("Sat, 21 Nov 2026 20:00:00 GMT", 0),
        ("Sat, 21 Nov 2026 19:58:30 GMT", 90),
        ("Sat, 21 Nov 2026 20:02:00 GMT", -120),
        ("Sun, 22 Nov 2026 20:00:00 GMT", -86400),
    ],
)
def test_the_skew_is_what_the_answer_s_date_says(date: str, ahead_s: int) -> None:
    assert clock_skew(clients_that_hear(date), now=lambda: NOW) == timedelta(seconds=ahead_s)


def test_a_slow_answer_is_compared_with_the_middle_of_the_wait() -> None:
    times = iter([NOW, NOW + timedelta(seconds=4)])
    hears = clients_that_hear("Sat, 21 Nov 2026 20:00:02 GMT")
    assert clock_skew(hears, now=lambda: next(times)) == timedelta(0)


def test_a_refusal_for_its_time_tells_the_time_too() -> None:
    hears = clients_that_hear("Sat, 21 Nov 2026 19:00:00 GMT", status=403, code="SignatureDoesNotMatch")
    assert clock_skew(hears, now=lambda: NOW) == timedelta(hours=1)


def test_another_refusal_stays_one() -> None:
    hears = clients_that_hear("Sat, 21 Nov 2026 20:00:00 GMT", status=403, code="InvalidClientTokenId")
    with pytest.raises(CloudError, match="InvalidClientTokenId"):
        clock_skew(hears, now=lambda: NOW)


@pytest.mark.parametrize("headers", [{}, {"date": "yesterday"}, {"date": ""}])
def test_an_answer_without_a_date_says_nothing(headers: dict[str, str]) -> None:
    assert date_of({"ResponseMetadata": {"HTTPHeaders": headers}}) is None


def test_a_date_without_a_zone_is_in_utc() -> None:
    hears = clients_that_hear("Sat, 21 Nov 2026 19:59:00")
    assert clock_skew(hears, now=lambda: NOW) == timedelta(minutes=1)


def test_nothing_is_made_by_a_computer_whose_clock_is_wrong() -> None:
    with pytest.raises(CloudError, match="ahead of AWS's") as refused:
        refuse_wrong_clock(clients_that_hear("Sat, 21 Nov 2020 20:00:00 GMT"))
    assert (refused.value.code, refused.value.hint) == ("ClockSkew", "timedatectl set-ntp true")


def test_half_a_minute_is_no_reason_to_refuse() -> None:
    now = format_datetime(datetime.now(UTC) - timedelta(seconds=30), usegmt=True)
    refuse_wrong_clock(clients_that_hear(now))


def test_the_sentence_names_by_how_much_and_in_which_direction() -> None:
    assert "clock is 1 m 30 s ahead of AWS's (at most 1 m is allowed)" in wrong_clock(timedelta(seconds=90))
    assert "clock is 1 h behind AWS's" in wrong_clock(timedelta(hours=-1))
    assert wrong_clock(timedelta(hours=1), undone="nothing was ended").endswith("so nothing was ended; set the clock")
