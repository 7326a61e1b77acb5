"""The region with booted machines, without an engine. Needs root on Linux and the base image (built when absent)."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clusterctl_rehearsal.cleaning import clean
from clusterctl_rehearsal.home import RehearsalHome, cache_folder, rehearsal_home
from clusterctl_rehearsal.machines.nspawn import NspawnDriver
from clusterctl_rehearsal.machines.owners import processes_of
from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.client import RegionClient, ensure_region, running_region
from clusterctl_rehearsal.region.launch import LAUNCH_TEMPLATE
from clusterctl_rehearsal.region.types import network

ASK_METADATA = """
import sys, urllib.request
base = "http://169.254.169.254/latest/"
headers = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
token = urllib.request.urlopen(urllib.request.Request(base + "api/token", method="PUT", headers=headers), timeout=5)
headers = {"X-aws-ec2-metadata-token": token.read().decode()}
answer = urllib.request.urlopen(urllib.request.Request(base + sys.argv[1], headers=headers), timeout=5)
print(answer.headers["Date"] is not None, answer.read().decode())
"""
NAME = f"t{uuid.uuid4().hex[:7]}"
TAGS = {"clusterctl:id": "0123456789ab", "clusterctl:name": NAME}


@pytest.fixture
def home(own_home: Path) -> Iterator[RehearsalHome]:
    problem = NspawnDriver(root=own_home, cache=cache_folder()).unusable()
    if problem is not None:
        pytest.fail(problem)
    yield from _cleaned_home(own_home)


@pytest.fixture
def other_home(tmp_path: Path) -> Iterator[RehearsalHome]:
    yield from _cleaned_home(tmp_path / "other")


def _cleaned_home(folder: Path) -> Iterator[RehearsalHome]:
    found = rehearsal_home({"CLUSTERCTL_HOME": str(folder)})
    yield found
    running = running_region(found)
    if running is not None:
        os.kill(running["pid"], signal.SIGKILL)
        _wait(lambda: running_region(found) is None, 5)
    clean(found, cluster=NAME)


@pytest.fixture
def region(home: RehearsalHome) -> Iterator[RegionClient]:
    with RegionClient(home) as client:
        yield client


def _wait(condition: Callable[[], bool], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _make(region: RegionClient, token: str, **inputs: Any) -> str:
    asked = {"type": token, "inputs": inputs, "region": "us-west-2", "request": uuid.uuid4().hex, "machines": "nspawn"}
    return str(region.ask("create", asked)["id"])


def _nodes(region: RegionClient, count: int) -> dict[str, str]:
    vpc = _make(region, network.VPC, cidrBlock="10.0.0.0/16", tags=TAGS)
    subnet = _make(region, network.SUBNET, vpcId=vpc, cidrBlock="10.0.0.0/20", tags=TAGS)
    group = _make(region, network.SECURITY_GROUP, vpcId=vpc, name="nodes", tags=TAGS)
    made = {}
    for slot in range(count):
        card = {"deviceIndex": 0, "subnetId": subnet, "securityGroups": [group], "deleteOnTermination": "true"}
        template = _make(
            region,
            LAUNCH_TEMPLATE,
            name=f"node-{slot}",
            imageId="ami-0123456789abcdef0",
            instanceType="p5.48xlarge",
            userData=base64.b64encode(f"#!/bin/sh\necho slot {slot}\n".encode()).decode(),
            instanceInitiatedShutdownBehavior="terminate",
            metadataOptions={"httpTokens": "required"},
            networkInterfaces=[{**card, "privateIpAddress": f"10.0.8.{slot}"}],
            tagSpecifications=[{"resourceType": "instance", "tags": {**TAGS, "clusterctl:slot": str(slot)}}],
        )
        made[f"{NAME}-{slot}"] = _make(region, network.INSTANCE, launchTemplate={"id": template})
    return made


def _inside(node: str, *argv: str) -> str:
    """What a command prints in the network of a node."""
    command = ["nsenter", f"--net=/run/netns/ccl-{NAME}.{node}", *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()


def _states(region: RegionClient) -> dict[str, str]:
    rows = region.ask("list", {})["resources"]
    return {row["node"]: row["state"] for row in rows if row["node"]}


def test_every_machine_is_answered_as_itself_also_after_the_region_was_killed(
    home: RehearsalHome, region: RegionClient
) -> None:
    made = _nodes(region, 2)
    for _ in range(2):
        for node, instance_id in made.items():
            answer = _inside(node, sys.executable, "-c", ASK_METADATA, "meta-data/instance-id")
            assert answer == f"True {instance_id}"
        os.kill(ensure_region(home)["pid"], signal.SIGKILL)
        assert _states(region) == dict.fromkeys(made, "running")
    assert _inside(f"{NAME}-1", sys.executable, "-c", ASK_METADATA, "user-data").endswith("echo slot 1")


def test_a_machine_that_powers_off_is_a_terminated_instance_and_leaves_nothing(
    home: RehearsalHome, region: RegionClient
) -> None:
    made = _nodes(region, 1)
    node = f"{NAME}-0"
    booted = home.machines / NAME / node / "upper/var/lib/cloud/data/result.json"
    _wait(booted.exists, 120)
    assert json.loads(booted.read_text())["v1"]["errors"] == []
    leader = _leader(node)
    subprocess.run(
        ["nsenter", f"--target={leader}", "--mount", "--pid", "--uts", "--ipc", "--net", "systemctl", "poweroff"],
        timeout=30,
        check=False,
        capture_output=True,
    )
    _wait(lambda: _states(region) == {}, 30)
    assert region.ask("read", {"type": network.INSTANCE, "id": made[node]})["outputs"] is None
    assert not Path(f"/run/netns/ccl-{NAME}.{node}").exists()


def test_clean_ends_a_machine_of_which_only_its_processes_are_left(home: RehearsalHome, region: RegionClient) -> None:
    (node,) = _nodes(region, 1)
    os.kill(ensure_region(home)["pid"], signal.SIGKILL)
    _wait(lambda: running_region(home) is None, 5)
    NspawnDriver(root=home.machines, cache=cache_folder()).freeze(NAME, node)  # it writes nothing, and does not end
    shutil.rmtree(home.root)
    assert {cluster for _, cluster in processes_of(home.machines)} == {NAME}
    assert f"ended {NAME}-0 of {NAME}" in clean(home, cluster=None)
    assert processes_of(home.machines) == []
    assert not Path(f"/run/netns/ccl-{NAME}").exists()


def test_a_dead_record_does_not_claim_another_homes_machine(
    home: RehearsalHome, region: RegionClient, other_home: RehearsalHome
) -> None:
    node, instance_id = next(iter(_nodes(region, 1).items()))
    os.kill(ensure_region(home)["pid"], signal.SIGKILL)
    NspawnDriver(root=home.machines, cache=cache_folder()).kill(NAME, node)  # while nobody looks: as a reboot would
    with RegionClient(other_home) as other:
        theirs = _nodes(other, 1)[node]
        assert _states(region) == {}  # its region is back, and looked for what is still there
        with pytest.raises(AwsError, match="NotFound"):
            region.ask("delete", {"type": network.INSTANCE, "id": instance_id})
        assert _states(other) == {node: "running"}
        assert _leader(node) > 1
        other.ask("delete", {"type": network.INSTANCE, "id": theirs})
        with pytest.raises(StandInRefusal, match=rf"on this computer \(.*in the home {other_home.root.parent}\)"):
            _make(region, network.INSTANCE, launchTemplate={"name": "node-0"})


def _leader(node: str) -> int:
    """The first process of the machine: the oldest in its cgroup whose own pid namespace says 1."""
    for root in (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")):
        for path in (root / "clusterctl" / NAME / node).rglob("cgroup.procs"):
            for pid in path.read_text().split():
                status = Path(f"/proc/{pid}/status").read_text()
                if any(line.startswith("NSpid:") and line.split()[-1] == "1" for line in status.splitlines()):
                    return int(pid)
    raise AssertionError(f"{node} has no first process")
