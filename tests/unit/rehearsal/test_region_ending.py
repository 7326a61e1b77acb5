"""A region ends only once it has said so, and whoever asks it then is told in the words of AWS."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from typing import cast

import botocore.session
import pytest
from botocore import parsers
from botocore.model import Shape
from clusterctl_infra.names import REGION_PRIVATE, REGION_TOKEN_HEADER
from clusterctl_infra.region_keys import new_keys
from clusterctl_rehearsal.api.front import Api
from clusterctl_rehearsal.region.faults import Faults
from clusterctl_rehearsal.server.activity import Activity
from clusterctl_rehearsal.server.ending import IDLE_S, Ending
from clusterctl_rehearsal.server.http import RegionServer
from clusterctl_rehearsal.server.private_requests import PrivateRequests
from clusterctl_rehearsal.server.throttle import Throttle

from tests.unit.rehearsal.small_region import REGION, SmallRegion

TOKEN = "secret"
FULL = OSError(errno.ENOSPC, "No space left on device")


class Announcements:
    """What the region has announced, and what is in the way of the next ones."""

    def __init__(self) -> None:
        self.made: list[bool] = []
        self.refused: set[bool] = set()
        self.interrupted_by: Activity | None = None

    def __call__(self, is_ending: bool) -> None:
        if is_ending in self.refused:
            raise FULL
        self.made.append(is_ending)
        if self.interrupted_by is not None:  # somebody found the region by the announcement before
            self.interrupted_by.begin()
            self.interrupted_by = None


class Watched:
    """A region that nobody has asked anything for long enough."""

    def __init__(self) -> None:
        self.now = 100.0
        self.is_empty = True
        self.activity = Activity(clock=lambda: self.now)
        self.announcements = Announcements()
        self.ending = Ending(activity=self.activity, announce=self.announcements, is_empty=lambda: self.is_empty)
        self.now += IDLE_S + 1


@pytest.fixture
def region() -> Watched:
    return Watched()


def test_an_empty_region_that_nobody_asks_anything_says_so_and_ends(region: Watched) -> None:
    assert region.ending.has_come()
    assert region.announcements.made == [True]


def test_a_region_with_a_resource_or_a_late_request_goes_on(region: Watched) -> None:
    region.is_empty = False
    assert not region.ending.has_come()
    region.is_empty = True
    region.now -= 2
    assert not region.ending.has_come()
    assert region.announcements.made == []


def test_a_region_that_cannot_say_that_it_ends_goes_on_until_it_can(region: Watched) -> None:
    region.announcements.refused = {True}
    assert not region.ending.has_come()
    assert region.activity.begin()
    region.activity.end()
    region.now += IDLE_S + 1
    region.announcements.refused = set()
    assert region.ending.has_come()


def test_a_region_that_was_asked_meanwhile_takes_it_back_as_soon_as_it_can(
    region: Watched, capsys: pytest.CaptureFixture[str]
) -> None:
    region.announcements.interrupted_by = region.activity
    region.announcements.refused = {False}
    assert not region.ending.has_come()
    assert "No space left on device" in capsys.readouterr().err
    assert not region.ending.has_come()
    assert region.announcements.made == [True]
    region.announcements.refused = set()
    assert not region.ending.has_come()
    assert not region.ending.has_come()
    assert region.announcements.made == [True, False]


class Pipe(socket.socket):
    """An end of a connection that is not TCP, so that it takes none of TCP's options."""

    def setsockopt(self, *option: object) -> None:
        """Does nothing."""


@pytest.fixture
def ended(world: SmallRegion) -> Iterator[RegionServer]:
    """A server that listens nowhere and takes no request any more."""
    faults = Faults(
        instances=world.instances, behaviour=world.behaviour, catalog=world.region.catalog, stop=lambda: None
    )
    server = RegionServer(
        0,
        requests=PrivateRequests(region=world.region, behaviour=world.behaviour, faults=faults, throttle=Throttle()),
        api=Api(region=world.region, before=lambda: None, executions=world.executions, buckets=world.buckets),
        token=TOKEN,
        keys=new_keys(),
        listens=False,
    )
    server.activity.end_if_idle(-1.0)
    yield server
    server.server_close()


def answer(server: RegionServer, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
    """Status and body of the answer to a POST."""
    ours, theirs = socket.socketpair()
    with ours, Pipe(fileno=theirs.detach()) as connection:
        lines = [f"POST {path} HTTP/1.1", "Content-Length: 0", *(f"{name}: {text}" for name, text in headers.items())]
        ours.sendall("\r\n".join([*lines, "", ""]).encode())
        server.finish_request(connection, ("127.0.0.1", 0))
        connection.shutdown(socket.SHUT_WR)
        reply = b"".join(iter(lambda: ours.recv(65536), b""))
    head, _, body = reply.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


@pytest.mark.parametrize(
    ("service", "operation", "signed_as"),
    [
        ("ec2", "DescribeInstances", "ec2"),
        ("iam", "ListRoles", "iam"),
        ("stepfunctions", "ListStateMachines", "states"),
        ("efs", "DescribeFileSystems", "elasticfilesystem"),
        ("s3", "ListBuckets", "s3"),
    ],
)
def test_a_call_of_an_ending_region_is_refused_in_words_that_botocore_reads_and_asks_again_after(
    ended: RegionServer, service: str, operation: str, signed_as: str
) -> None:
    scope = f"Credential={ended.keys.access_key_id}/20260101/{REGION}/{signed_as}/aws4_request"
    authorization = f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host;x-amz-date, Signature={'0' * 64}"
    status, body = answer(ended, "/", {"Authorization": authorization})
    model = botocore.session.Session().get_service_model(service)
    shape = cast(Shape, model.operation_model(operation).output_shape)
    parser = parsers.create_parser(model.resolved_protocol)
    parsed = parser.parse({"status_code": status, "headers": {}, "body": body}, shape)
    assert (status, parsed["Error"]["Code"]) == (503, "Unavailable")


def test_a_private_request_of_an_ending_region_gets_no_answer_that_a_client_takes_for_one(
    ended: RegionServer,
) -> None:
    assert answer(ended, f"{REGION_PRIVATE}ping", {REGION_TOKEN_HEADER: TOKEN}) == (503, b"{}")
