"""How a change begins and ends, without an engine."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any  # a row of EC2

import pytest
from clusterctl.cost.sighting_file import read_seen
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import StackState, StateResource
from clusterctl.home import Home
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.opening import inspect, open_change
from clusterctl.output import Output
from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.names import ID_TAG, SLOT_TAG

from tests.unit.cli.cloud.fake_answers import ACCOUNT, clients_of
from tests.unit.cli.engine.state_rows import machines
from tests.unit.cli.lifecycle.recorded_runs import ID, IDENTITY

VPC = StateResource(urn="u::vpc", type="aws:ec2/vpc:Vpc", id="vpc-1", outputs={"ownerId": ACCOUNT})
MACHINE: dict[str, Any] = {
    "InstanceId": "i-0",
    "InstanceType": "p5.48xlarge",
    "LaunchTime": datetime(2026, 11, 21, 10, tzinfo=UTC),
    "State": {"Name": "running"},
    "Tags": [{"Key": ID_TAG, "Value": ID}, {"Key": SLOT_TAG, "Value": "0"}],
}
RUNS = {("us-west-2", "describe_instances", "Reservations"): [{"Instances": [MACHINE]}]}


def test_each_change_ends_with_the_nodes_that_ssh_knows_written_anew(tmp_path: Path) -> None:
    home = Home(path=tmp_path / "home")
    home.path.mkdir()
    file = home.path / "ssh_config"
    file.write_text("Host old-0\n")
    stack = Stack(directory=tmp_path, project="train", name="dev", is_rehearsal_project=False)
    output = Output(stdout=io.BytesIO(), stderr=io.BytesIO())
    environ = {"PATH": "/usr/bin", "PULUMI_ACCESS_TOKEN": "none"}
    with open_change(
        "up", stack, name="train", region="us-west-2", rehearse=False, home=home, environ=environ, output=output
    ):
        assert "old-0" in file.read_text()
    assert "old-0" not in file.read_text()


@pytest.mark.parametrize(
    ("has_network", "seen"), [(True, ["i-0"]), (False, [])], ids=["its account is known", "no network yet"]
)
def test_what_runs_is_written_down_for_cost_as_soon_as_the_state_names_the_cluster(
    runner: Callable[..., Change], has_network: bool, seen: list[str]
) -> None:
    """A run that was killed could not say what it left, and no inventory names the cluster yet."""
    state = StackState(resources=(IDENTITY, *((VPC,) if has_network else ())))
    change = runner(state=state, aws=clients_of(RUNS))
    assert inspect(change) == (state, False)
    assert list(read_seen(change.home.observed_file(ID))) == seen


def test_what_runs_is_written_down_for_cost_before_a_repair_ends_any_of_it(runner: Callable[..., Change]) -> None:
    state = StackState(resources=(IDENTITY, *machines((0,))))
    change = runner(state=state, aws=clients_of(RUNS))
    change.read_state()
    assert list(read_seen(change.home.observed_file(ID))) == []
    assert change.repair_state(state, was_cut_off=False) == state
    assert list(read_seen(change.home.observed_file(ID))) == ["i-0"]


def test_credentials_of_another_account_are_refused_before_anything_of_the_cluster_is_touched(
    runner: Callable[..., Change],
) -> None:
    network = replace(VPC, outputs={"ownerId": "999900001111"})
    change = runner(state=StackState(resources=(IDENTITY, network)), aws=clients_of(RUNS))
    with pytest.raises(ClusterctlError, match="999900001111"):
        inspect(change)
    assert not change.home.observed_file(ID).exists()
