"""The region's server as a process: started on demand, killed, restarted, ended. Needs loopback, nothing else."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from clusterctl.cloud.clients import AwsClients
from clusterctl.engine.region import region_endpoint, start_beside
from clusterctl.home import Home
from clusterctl_infra.errors import RehearsalError
from clusterctl_rehearsal.home import RehearsalHome, rehearsal_home
from clusterctl_rehearsal.region.client import RegionClient, ensure_region, running_region
from clusterctl_rehearsal.region.types.network import VPC
from clusterctl_rehearsal.server.ending import IDLE_S
from clusterctl_rehearsal.states.ended_executions import read_ended

from tests.integration.region_access import access_of
from tests.integration.rehearsed import wait_until


@pytest.fixture
def home(own_home: Path) -> Iterator[RehearsalHome]:
    found = rehearsal_home({"CLUSTERCTL_HOME": str(own_home)})
    yield found
    running = running_region(found)
    if running is not None:
        os.kill(running["pid"], signal.SIGKILL)


@pytest.fixture
def client(home: RehearsalHome) -> Iterator[RegionClient]:
    with RegionClient(home) as made:
        yield made


def _create(client: RegionClient, request: str, cidr: str = "10.0.0.0/16") -> str:
    inputs = {"cidrBlock": cidr, "tags": {"clusterctl:id": "0123456789ab"}}
    asked = {"type": VPC, "inputs": inputs, "region": "us-west-2", "request": request, "machines": "none"}
    return str(client.ask("create", asked)["id"])


def _vpcs(client: RegionClient) -> list[str]:
    return [row["id"] for row in client.ask("list", {})["resources"] if row["type"] == VPC]


def _unread_bytes(port: int) -> int:
    """What lies at the server's ends of connections to this port on loopback, not yet read by it (proc(5), net/tcp)."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    established = [row for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01"]
    return sum(int(row[4].partition(":")[2], 16) for row in established)


def _wait_until_gone(home: RehearsalHome, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while running_region(home) is not None:
        assert time.monotonic() < deadline, "the region still runs"
        time.sleep(0.05)


def test_it_starts_once_whoever_asks_for_it(home: RehearsalHome) -> None:
    rows: list[dict[str, Any]] = []
    threads = [threading.Thread(target=lambda: rows.append(ensure_region(home))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (len(rows), len({row["pid"] for row in rows})) == (8, 1)


def test_killed_it_comes_back_with_its_resources_on_its_port(home: RehearsalHome, client: RegionClient) -> None:
    vpc = _create(client, "one")
    before = ensure_region(home)
    os.kill(before["pid"], signal.SIGKILL)
    _wait_until_gone(home, 5)
    assert _vpcs(client) == [vpc]
    after = ensure_region(home)
    assert (after["endpoint"], after["pid"] != before["pid"]) == (before["endpoint"], True)


def test_a_create_that_a_kill_interrupted_is_made_once(home: RehearsalHome, client: RegionClient) -> None:
    region = ensure_region(home)
    os.kill(region["pid"], signal.SIGSTOP)
    made: list[str] = []
    thread = threading.Thread(target=lambda: made.append(_create(client, "one")))
    thread.start()
    port = int(region["endpoint"].rpartition(":")[2])
    wait_until(lambda: _unread_bytes(port) > 0, what="the request has come to the region", timeout_s=30)
    assert made == []
    os.kill(region["pid"], signal.SIGKILL)
    thread.join(30)
    assert _vpcs(client) == made
    assert _create(client, "one") == made[0]


def test_its_private_requests_want_the_token(home: RehearsalHome, client: RegionClient) -> None:
    host, port = ensure_region(home)["endpoint"].removeprefix("http://").split(":")
    assert host == "127.0.0.1"
    assert home.token_file.stat().st_mode & 0o077 == 0
    connection = http.client.HTTPConnection(host, int(port), timeout=5)
    connection.request("POST", "/clusterctl/list", b"{}", {"X-Clusterctl-Token": "guess"})
    assert connection.getresponse().status == 403
    connection.close()


def test_it_ends_by_itself_when_nothing_is_left(home: RehearsalHome, client: RegionClient) -> None:
    vpc = _create(client, "one")
    time.sleep(IDLE_S / 2)
    assert running_region(home) is not None
    client.ask("delete", {"type": VPC, "id": vpc})
    _wait_until_gone(home, IDLE_S + 5)


def test_it_ends_when_its_home_is_taken_away(home: RehearsalHome) -> None:
    pid = ensure_region(home)["pid"]
    shutil.rmtree(home.root)
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}/stat").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[1][:3]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_boto3_sees_what_the_plugin_made(home: RehearsalHome, client: RegionClient) -> None:
    vpc = _create(client, "one")
    ec2 = AwsClients.at(access_of(home), region="us-west-2").ec2
    rows = ec2.describe_vpcs(Filters=[{"Name": "tag:clusterctl:id", "Values": ["0123456789ab"]}])["Vpcs"]
    assert [row["VpcId"] for row in rows] == [vpc]
    ec2.delete_vpc(VpcId=vpc)
    ec2.close()
    assert _vpcs(client) == []


def test_settings_and_faults_outlive_it(home: RehearsalHome, client: RegionClient) -> None:
    client.ask("fault", {"verb": "quota", "args": ["vpcs=1"]})
    os.kill(ensure_region(home)["pid"], signal.SIGKILL)
    _wait_until_gone(home, 5)
    assert client.ask("list", {})["faults"] == {"quotas": {"vpcs": 1}}
    assert json.loads((home.root / "faults.json").read_text()) == {"quotas": {"vpcs": 1}}


def test_an_execution_that_breaks_has_failed_and_its_alarm_outlives_the_region(home: RehearsalHome) -> None:
    machine = _breaking_machine(home)
    clients = AwsClients.at(access_of(home), region="us-west-2")
    run = clients.sfn.start_execution(stateMachineArn=machine, input='{"S": "soon"}')["executionArn"]
    wait_until(
        lambda: clients.sfn.describe_execution(executionArn=run)["status"] == "FAILED", what="it fails", timeout_s=20
    )
    wait_until(lambda: _alarms(home) == ["ALARM"], what="its alarm is on", timeout_s=20)
    wait_until(lambda: bool(read_ended(home.executions_file)), what="it is written down", timeout_s=20)
    os.kill(ensure_region(home)["pid"], signal.SIGKILL)
    _wait_until_gone(home, 5)
    assert _alarms(home) == ["ALARM"]
    row = clients.sfn.describe_execution(executionArn=run)
    assert (row["status"], row["error"]) == ("FAILED", "States.Runtime")
    assert "ValueError: could not convert" in row["cause"]


def _breaking_machine(home: RehearsalHome) -> str:
    """A state machine that cannot wait for what is no number, and an alarm on its failures; gives its ARN."""
    access = access_of(home)
    trust = {"Statement": [{"Effect": "Allow", "Principal": {"Service": "states.amazonaws.com"}}]}
    client = boto3.client(
        "iam",
        region_name="us-west-2",
        endpoint_url=access.endpoint_url,
        aws_access_key_id=access.keys.access_key_id,
        aws_secret_access_key=access.keys.secret_access_key,
    )
    with contextlib.closing(client) as iam:
        role = iam.create_role(RoleName="states", AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
    wait = {"Type": "Wait", "SecondsPath": "$.S", "End": True}
    definition = json.dumps({"StartAt": "Wait", "States": {"Wait": wait}})
    clients = AwsClients.at(access, region="us-west-2")
    machine = clients.sfn.create_state_machine(name="breaks", definition=definition, roleArn=role)["stateMachineArn"]
    clients.cloudwatch.put_metric_alarm(
        AlarmName="breaks-failed",
        Namespace="AWS/States",
        MetricName="ExecutionsFailed",
        Dimensions=[{"Name": "StateMachineArn", "Value": machine}],
        TreatMissingData="ignore",
        ComparisonOperator="GreaterThanThreshold",
        EvaluationPeriods=1,
        Threshold=0,
    )
    return str(machine)


def _alarms(home: RehearsalHome) -> list[str]:
    clients = AwsClients.at(access_of(home), region="us-west-2")
    return [row["StateValue"] for row in clients.cloudwatch.describe_alarms()["MetricAlarms"]]


def test_where_no_process_can_be_made_who_asks_for_the_region_is_told_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    start_beside(Home(path=tmp_path), {}).join()
    assert capfd.readouterr().err == ""
    with pytest.raises(RehearsalError, match=r"the rehearsed region does not start: .*No such file"):
        region_endpoint(Home(path=tmp_path), {})
