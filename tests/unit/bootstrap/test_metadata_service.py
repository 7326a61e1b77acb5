"""The metadata service as a node asks it: a page, none, a token that holds no more, and a service that is not well."""

from __future__ import annotations

import http.client
import io
from dataclasses import dataclass, field

import pytest
from clusterctl_bootstrap.node.metadata_service import HOST, MetadataService, Page

DATE, AT_S = "Fri, 15 Jan 2027 08:00:00 GMT", 1_800_000_000.0
PAGES = "/latest/meta-data/"


@dataclass
class FakeService:
    """Answers as AWS documents it: a token for a PUT, a page for a request with the newest token."""

    pages: dict[str, str] = field(default_factory=dict)
    failing: dict[str, int] = field(default_factory=dict)
    """Page → the error status with which the service answers for now."""
    tokens: int = 0
    """How many tokens were given; only the last one is valid."""

    def connection(self, host: str, port: int, timeout: float) -> FakeConnection:
        assert (host, port) == (HOST, 80)
        return FakeConnection(self)

    def answer(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
        if (method, path) == ("PUT", "/latest/api/token"):
            self.tokens += 1
            return 200, f"token {self.tokens}"
        if headers.get("X-aws-ec2-metadata-token") != f"token {self.tokens}":
            return 401, ""
        name = path.removeprefix(PAGES)
        if name in self.failing:
            return self.failing[name], "not now"
        return (200, self.pages[name]) if name in self.pages else (404, "<html>Not Found</html>")


class FakeConnection:
    """One question and its answer."""

    def __init__(self, service: FakeService) -> None:
        self.service = service

    def request(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.status, self.text = self.service.answer(method, path, headers)

    def getresponse(self) -> FakeConnection:
        return self

    def getheader(self, name: str) -> str | None:
        return DATE if name == "Date" else None

    def read(self, most: int) -> bytes:
        return io.BytesIO(self.text.encode()).read(most)

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> FakeService:
    """What this machine reaches as the metadata service."""
    made = FakeService(pages={"instance-life-cycle": "spot"})
    monkeypatch.setattr(http.client, "HTTPConnection", made.connection)
    return made


def test_a_page_comes_with_awss_time(service: FakeService) -> None:
    assert MetadataService().page("instance-life-cycle") == Page("spot", AT_S)


def test_a_page_that_there_is_not_has_no_text_and_is_no_failure(service: FakeService) -> None:
    assert MetadataService().page("spot/instance-action") == Page(None, AT_S)


def test_one_token_does_for_all_pages_as_long_as_it_holds_and_then_another_is_got(service: FakeService) -> None:
    asked = MetadataService()
    for _ in range(3):
        asked.page("instance-life-cycle")
    assert service.tokens == 1
    service.tokens = 7  # the service knows the node's token no more
    assert asked.page("instance-life-cycle").text == "spot"
    assert service.tokens == 8


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_service_that_cannot_tell_just_now_has_not_said_that_there_is_no_page(
    service: FakeService, status: int
) -> None:
    service.failing["spot/instance-action"] = status
    with pytest.raises(OSError, match=f"^spot/instance-action: {status}$"):
        MetadataService().page("spot/instance-action")
