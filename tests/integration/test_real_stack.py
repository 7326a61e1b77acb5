"""Commands on a stack that is not rehearsed: what they ask before money is spent, and whose account they refuse.

A region on loopback answers in AWS's place, so that the questions come; no test goes on to the engine's own plugin.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any  # a state as JSON

import pytest
from clusterctl_rehearsal.home import rehearsal_home
from clusterctl_rehearsal.region.client import RegionClient

from tests.integration.cli.terminal import at_a_terminal
from tests.integration.recorded_stack import make_it_a_real_stack
from tests.integration.region_access import access_of
from tests.integration.rehearsed import CLUSTERCTL, Rehearsed

FROM_ONE_ADDRESS = {"mode": "public", "ssh_from": ["8.8.4.4/32"]}
"""One that somebody has: AWS is asked for no network of examples."""
OTHERS_ACCOUNT = "111122223333"
REGIONS_ACCOUNT = "000000000000"
STACK = "pulumi:pulumi:Stack"
VPC = "aws:ec2/vpc:Vpc"


@pytest.fixture
def in_aws(recorded: Rehearsed) -> Rehearsed:
    """The stack of two nodes, for AWS; its credentials are of the account of a region on loopback."""
    make_it_a_real_stack(recorded)
    recorded.write(machines="none", access=FROM_ONE_ADDRESS)  # private nodes want AWS's plugin on this computer
    home = rehearsal_home(recorded.env)
    with RegionClient(home) as client:  # a region with nothing in it ends after ten seconds without a request
        asked = {"type": VPC, "inputs": {"cidrBlock": "10.9.0.0/16"}, "region": "us-west-2"}
        client.ask("create", {**asked, "request": "somebody else's", "machines": "none"})
    access = access_of(home)
    recorded.env |= {
        "AWS_ENDPOINT_URL": access.endpoint_url,
        "AWS_ACCESS_KEY_ID": access.keys.access_key_id,
        "AWS_SECRET_ACCESS_KEY": access.keys.secret_access_key,
        "AWS_MAX_ATTEMPTS": "1",
    }
    return recorded


def assert_nothing_was_made(cluster: Rehearsed) -> None:
    """Neither in the region nor in the engine's backend."""
    assert [row.token for row in cluster.resources()] == [VPC], "somebody else's alone"
    assert not list(Path(cluster.env["PULUMI_BACKEND_URL"].removeprefix("file://")).rglob("dev.json"))


@pytest.mark.parametrize("answer", [b"y\n", b"no\n", b"\n"])
def test_a_price_that_a_person_does_not_agree_to_by_name_makes_nothing(in_aws: Rehearsed, answer: bytes) -> None:
    with at_a_terminal([CLUSTERCTL, "up", str(in_aws.folder)], in_aws.env) as terminal:
        asked = terminal.screen_until(lambda seen: b"to agree:" in seen, timeout_s=90).decode()
        terminal.type(answer)
        rest = terminal.rest(timeout_s=90)
    assert "This will run at $110.13/h until " in asked
    assert "Create 2 × p5.48xlarge?" in asked
    assert f"$110.13 an hour is more than $20.00: type the cluster's name, {in_aws.name}, to agree:" in asked
    assert "not agreed, nothing was changed" in rest
    assert terminal.process.returncode == 2
    assert_nothing_was_made(in_aws)


def test_a_price_that_is_small_is_agreed_to_with_a_y_and_refused_with_enter(in_aws: Rehearsed) -> None:
    in_aws.write(machines="none", nodes=1, instance_type="g6.xlarge")
    with at_a_terminal([CLUSTERCTL, "up", str(in_aws.folder)], in_aws.env) as terminal:
        asked = terminal.screen_until(lambda seen: b"[y/N]" in seen, timeout_s=90).decode()
        terminal.type(b"\n")
        rest = terminal.rest(timeout_s=90)
    assert "Create 1 × g6.xlarge?" in asked
    assert "not agreed, nothing was changed" in rest
    assert terminal.process.returncode == 2
    assert_nothing_was_made(in_aws)


def test_without_a_terminal_and_without_a_yes_nobody_has_agreed(in_aws: Rehearsed) -> None:
    done = in_aws.run("up", str(in_aws.folder))
    assert done.exit_code == 2, done.text
    assert (
        "not agreed, since there is no terminal to ask at; nothing was changed. This will run at $110.13/h"
        in done.stderr
    )
    assert f"next: clusterctl up {in_aws.folder} --yes" in done.stderr
    assert_nothing_was_made(in_aws)


@pytest.mark.parametrize("verb", ["up", "down"])
def test_with_another_accounts_credentials_a_cluster_is_neither_changed_nor_taken_for_gone(
    in_aws: Rehearsed, verb: str
) -> None:
    before = import_state_of(in_aws, account=OTHERS_ACCOUNT)
    refused = in_aws.run(verb, str(in_aws.folder), "--yes")
    assert refused.exit_code == 1, refused.text
    assert OTHERS_ACCOUNT in refused.stderr
    assert REGIONS_ACCOUNT in refused.stderr
    assert "nothing was changed" in refused.stderr
    assert urns_of(in_aws) == before


def import_state_of(cluster: Rehearsed, *, account: str) -> list[str]:
    """Gives the stack a state with a network in this account; its URNs."""
    project = f"urn:pulumi:dev::{cluster.name}"
    stack = {"urn": f"{project}::{STACK}::{cluster.name}-dev", "type": STACK, "custom": False}
    network: dict[str, Any] = {"urn": f"{project}::{VPC}::vpc", "type": VPC, "custom": True, "id": "vpc-0"}
    network["outputs"] = {"ownerId": account}
    deployment = {"manifest": {"time": "2026-11-23T00:00:00Z"}, "resources": [stack, network]}
    file = cluster.folder.parent / "state.json"
    file.write_text(json.dumps({"version": 3, "deployment": deployment}))
    for words in (("stack", "init", "dev"), ("stack", "import", "--file", str(file))):
        done = cluster.pulumi(*words)
        assert done.exit_code == 0, done.text
    return urns_of(cluster)


def urns_of(cluster: Rehearsed) -> list[str]:
    """What the stack's state knows."""
    rows = json.loads(cluster.pulumi("stack", "export").stdout)["deployment"]["resources"]
    return [row["urn"] for row in rows]
