"""What slot 0 makes of the nodes' reports: who is told what, and when it asks whether the cluster may end."""

from __future__ import annotations

import io
import json
import time
import urllib.request
from pathlib import Path
from typing import Any  # parsed JSON

import pytest
from clusterctl_bootstrap.node import status
from clusterctl_bootstrap.node.idle_cluster import DOWN_S, IdleWatch
from clusterctl_bootstrap.node.watch import DRAIN_S

from tests.unit.bootstrap.fake_outside import BANNER, FakeOutside
from tests.unit.bootstrap.node_examples import born
from tests.unit.bootstrap.node_examples import status as node_status

LIMIT_S = 1800.0
KNOWN: dict[str, Any] = {
    "cluster": "train",
    "cluster_id": "0123456789ab",
    "generation": 3,
    "slot": 0,
    "slot_cidr": "10.0.8.0/21",
    "nodes": 0,
}
"""With `nodes` 0 the watch connects to none: the tests give it its peers."""


class FakePeer:
    """A node that reports now, and shows `when_asked` as signs of life when it is asked once more."""

    def __init__(self, quiet_s: float, *signs: str, when_asked: tuple[str, ...] = ("1 SSH session",)) -> None:
        self.when_asked = when_asked
        self.report = {"generation": 3, "quiet_s": quiet_s, "signs": list(signs), "saves": False, "asked": 0}
        self.reported_s = self.seen_s = time.monotonic()
        self.heard: list[str] = []

    def stop(self) -> None:
        """Nothing to hang up."""

    def say(self, line: str) -> None:
        self.heard.append(line)
        if line.startswith("look "):
            self.report.update(asked=int(line.removeprefix("look ")), signs=list(self.when_asked))


def silent() -> FakePeer:
    """A node that has neither reported nor answered for longer than the rule's time."""
    peer = FakePeer(0)
    peer.reported_s = float("-inf")
    peer.seen_s = time.monotonic() - LIMIT_S - 1
    return peer


class Watched:
    """Slot 0 with the nodes that a test gives it."""

    def __init__(self, root: Path, *peers: FakePeer, banner: str = BANNER) -> None:
        self.root = born(root)
        status.begin(root)
        self.watch = IdleWatch(root, KNOWN, LIMIT_S, FakeOutside(banner=banner))
        self.peers = peers
        self.watch.peers = list(peers)

    def look(self) -> list[str]:
        """What a look told each of the nodes."""
        self.watch.look()
        first, *others = [list(peer.heard) for peer in self.peers]
        assert all(heard == first for heard in others)
        for peer in self.peers:
            peer.heard.clear()
        return first

    @property
    def keeps(self) -> list[str]:
        """What `clusterctl status` shows."""
        return list(node_status(self.root)["idle"]["keeps"])


def test_nodes_that_were_quiet_for_the_whole_time_are_asked_once_more_and_a_sign_of_life_then_keeps_them(
    tmp_path: Path,
) -> None:
    watched = Watched(tmp_path, FakePeer(LIMIT_S), FakePeer(LIMIT_S))
    assert watched.look() == ["look 1"]
    assert watched.keeps == ["train-0: 1 SSH session", "train-1: 1 SSH session"]
    assert not watched.watch.is_ending


def test_a_node_that_does_not_report_but_answers_as_an_ssh_server_keeps_the_cluster(tmp_path: Path) -> None:
    watched = Watched(tmp_path, FakePeer(LIMIT_S), FakePeer(LIMIT_S), silent())
    assert watched.look() == []
    assert watched.keeps == ["train-2: does not report"]


def test_a_node_that_answers_nothing_for_the_whole_time_keeps_nobody(tmp_path: Path) -> None:
    watched = Watched(tmp_path, FakePeer(LIMIT_S), FakePeer(LIMIT_S), silent(), banner="No route to host")
    assert watched.look() == ["look 1"]


class FakeAws:
    """The metadata service and Step Functions, as a node asks them; `inputs` of what was started."""

    PAGES = (
        ("latest/api/token", "a token"),
        ("instance-identity/document", '{"region": "us-west-2", "accountId": "111122223333"}'),
        ("security-credentials/", "the-role"),
        ("security-credentials/the-role", '{"AccessKeyId": "ASIA", "SecretAccessKey": "s", "Token": "t"}'),
        ("services/partition", "aws"),
        ("services/domain", "amazonaws.com"),
    )

    def __init__(self) -> None:
        self.inputs: list[dict[str, Any]] = []

    def opener(self, *handlers: object) -> FakeAws:
        return self

    def open(self, request: urllib.request.Request, timeout: float) -> io.BytesIO:
        if request.full_url != "https://states.us-west-2.amazonaws.com/":
            return io.BytesIO(next(text for end, text in self.PAGES if request.full_url.endswith(end)).encode())
        assert isinstance(request.data, bytes)
        self.inputs.append(json.loads(json.loads(request.data)["input"]))
        return io.BytesIO(b'{"executionArn": "arn:of-the-end"}')


@pytest.mark.parametrize(("saves", "wait_s"), [(False, DOWN_S), (True, DOWN_S + DRAIN_S)])
def test_where_all_agree_aws_ends_what_the_nodes_leave_and_every_node_is_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saves: bool, wait_s: int
) -> None:
    aws = FakeAws()
    monkeypatch.setattr("urllib.request.build_opener", aws.opener)
    watched = Watched(tmp_path, FakePeer(LIMIT_S, when_asked=()), FakePeer(LIMIT_S, when_asked=()))
    watched.peers[1].report["saves"] = saves
    asked, end = watched.look()
    assert (asked, end.startswith("end idle since 20")) == ("look 1", True)
    assert aws.inputs == [{"WaitSeconds": wait_s}]
    assert watched.look() == [], "it is decided once"


@pytest.mark.parametrize(
    ("quiet_s", "signs", "warnings"),
    [
        (LIMIT_S - 301, (), []),
        (LIMIT_S - 240, (), ["warn train has been idle for 26 minutes and ends in 4 minutes"]),
        (LIMIT_S - 240, ("job train",), []),
    ],
    ids=["not yet", "five minutes before the end", "it is used"],
)
def test_people_are_warned_in_the_last_minutes_before_an_idle_cluster_ends(
    tmp_path: Path, quiet_s: float, signs: tuple[str, ...], warnings: list[str]
) -> None:
    watched = Watched(tmp_path, FakePeer(quiet_s, *signs), FakePeer(quiet_s + 60))
    assert [line.partition(":")[0] for line in watched.look()] == warnings


def test_people_are_warned_once_and_again_after_the_cluster_was_used(tmp_path: Path) -> None:
    node = FakePeer(LIMIT_S - 240)
    watched = Watched(tmp_path, node)
    assert len(watched.look()) == 1
    assert watched.look() == []
    node.report["signs"] = ["job train"]
    assert watched.look() == []
    node.report["signs"] = []
    assert len(watched.look()) == 1
