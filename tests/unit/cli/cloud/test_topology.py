"""Asking AWS where machines stand: in portions, all pages, and again while it does not know yet."""

from __future__ import annotations

from typing import Any  # what boto3 gives and takes

import pytest
from clusterctl.cloud.topology import ATTEMPTS, IDS_A_CALL, MOST_PAGES, PAUSE_S, network_paths
from clusterctl_infra.errors import CloudError

from tests.unit.cli.cloud.fake_clients import FakeClients


class FakeEc2:
    """Knows every instance from the given call on; two a page."""

    def __init__(self, *, knows_from_call: int = 1) -> None:
        self.calls: list[list[str]] = []
        self._knows_from_call = knows_from_call

    def describe_instance_topology(self, **asked: Any) -> dict[str, Any]:
        ids, start = asked["InstanceIds"], int(asked.get("NextToken", 0))
        self.calls += [] if start else [ids]
        known = ["top", "rack"] if len(self.calls) >= self._knows_from_call else None
        rows = [{"InstanceId": id, "NetworkNodes": known} for id in ids[start : start + 2]]
        rest = {"NextToken": str(start + 2)} if start + 2 < len(ids) else {}
        return {"Instances": rows, **rest}


def asking(ec2: FakeEc2, *, endpoint_url: str | None = None) -> FakeClients:
    """Clients of AWS, or of a rehearsed region, with this EC2."""
    return FakeClients(endpoint_url=endpoint_url, ec2=ec2)


def test_many_machines_are_asked_for_in_portions_and_all_pages_are_read() -> None:
    ec2 = FakeEc2()
    ids = [f"i-{number}" for number in range(IDS_A_CALL + 5)]
    paths = network_paths(asking(ec2), ids)
    assert [len(asked) for asked in ec2.calls] == [IDS_A_CALL, 5]
    assert paths == dict.fromkeys(ids, ("top", "rack"))


def test_what_aws_does_not_know_yet_is_asked_for_again() -> None:
    ec2, slept = FakeEc2(knows_from_call=2), list[float]()
    found = network_paths(asking(ec2), ["i-0", "i-1"], sleep=slept.append)
    assert found == dict.fromkeys(("i-0", "i-1"), ("top", "rack"))
    assert (len(ec2.calls), slept) == (2, [PAUSE_S])


def test_what_aws_never_tells_is_empty_in_the_end() -> None:
    ec2, slept = FakeEc2(knows_from_call=99), list[float]()
    assert network_paths(asking(ec2), ["i-0"], sleep=slept.append) == {"i-0": ()}
    assert (len(ec2.calls), slept) == (ATTEMPTS, [PAUSE_S] * (ATTEMPTS - 1))


def test_a_rehearsal_knows_at_once_or_never() -> None:
    ec2 = FakeEc2(knows_from_call=99)
    assert network_paths(asking(ec2, endpoint_url="http://127.0.0.1:1"), ["i-0"]) == {"i-0": ()}
    assert len(ec2.calls) == 1


class EndlessEc2(FakeEc2):
    """Says after each page that there is another one."""

    def describe_instance_topology(self, **asked: Any) -> dict[str, Any]:
        self.calls.append(asked["InstanceIds"])
        return {"Instances": [], "NextToken": str(len(self.calls))}


def test_pages_without_an_end_are_told_and_not_read_for_ever() -> None:
    ec2 = EndlessEc2()
    with pytest.raises(CloudError, match=f"about 1 of them: AWS's list goes on after {MOST_PAGES} pages"):
        network_paths(asking(ec2), ["i-0"])
    assert len(ec2.calls) == MOST_PAGES
