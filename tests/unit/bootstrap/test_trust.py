"""The files by which nodes know each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl_bootstrap.node import trust as node_trust
from clusterctl_bootstrap.node.trust import hand_over
from clusterctl_bootstrap.trust import BARRIER_SECRET, NODE_KEY, address_pattern, trust_files

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import PLAN, access, born, plan

ADDRESSES = {
    "10.0.1.128/25": "10.0.1.*",
    "10.0.8.0/21": "10.0.*",
    "10.1.0.0/16": "10.1.*",
    "10.128.0.0/9": "10.*",
    "10.0.1.4/32": "10.0.1.4",
}


@pytest.mark.parametrize(("cidr", "pattern"), ADDRESSES.items())
def test_a_range_is_matched_by_its_whole_octets(cidr: str, pattern: str) -> None:
    assert address_pattern(cidr) == pattern


def test_only_the_two_secrets_are_private() -> None:
    modes = {entry["path"]: entry["permissions"] for entry in trust_files(PLAN, access())}
    assert {path for path, mode in modes.items() if mode == "0600"} == {NODE_KEY, BARRIER_SECRET}
    secrets = [entry for entry in trust_files(PLAN, access()) if "PRIVATE" in entry["content"]]
    assert [entry["path"] for entry in secrets] == [NODE_KEY]


def test_the_node_key_opens_the_login_user_alone_and_only_from_the_clusters_addresses() -> None:
    files = {entry["path"]: entry["content"] for entry in trust_files(PLAN, access())}
    (path,) = [path for path in files if "/keys-" in path]
    assert path == "/etc/ssh/clusterctl/keys-ubuntu"
    assert files[path] == f'from="10.0.8.0/21" {access().trust.node_public_key}\n'


def test_all_but_the_certificate_is_the_same_on_every_node_and_for_every_size() -> None:
    few = trust_files(plan(slot=1, nodes=2), access(1))
    many = trust_files(plan(slot=255, nodes=256), access(255))
    different = [entry["path"] for entry, other in zip(few, many, strict=True) if entry != other]
    assert different == ["/etc/ssh/clusterctl/host-certificate"]


def test_what_is_secret_is_not_shown_by_accident() -> None:
    shown = repr(access().trust)
    assert "PRIVATE" not in shown
    assert access().trust.barrier_secret not in shown


def test_the_secrets_are_given_to_the_login_user(tmp_path: Path) -> None:
    root, outside = born(tmp_path), FakeOutside()
    hand_over(root, outside)
    assert outside.owned == {"ssh_key": (1000, 1001), "barrier": (1000, 1001)}


def test_the_agent_finds_the_secrets_where_they_were_written() -> None:
    assert [f"/{node_trust.NODE_KEY}", f"/{node_trust.BARRIER_SECRET}"] == [NODE_KEY, BARRIER_SECRET]
