"""An `up` goes on from what is dead, gone or half made."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from clusterctl.engine.run_file import new_record, write_record
from clusterctl_infra.names import SLOT_TAG
from clusterctl_rehearsal.home import rehearsal_home
from clusterctl_rehearsal.region.client import RegionClient

from tests.integration.kill_campaign import assert_gone, victims_of
from tests.integration.recorded_stack import INSTANCE, PUBLIC, instances, made
from tests.integration.region_access import clients_of
from tests.integration.rehearsed import CLUSTERCTL, Rehearsed, wait_until

if TYPE_CHECKING:
    from types_boto3_ec2.type_defs import FilterTypeDef


def test_a_slot_of_which_all_is_gone_is_made_anew(recorded: Rehearsed) -> None:
    """As after a `down` of many whose engine was killed: its state still has a launch template and an address."""
    recorded.write(machines="none", access=PUBLIC)
    recorded.up()
    before = recorded.instance_ids()
    stays, goes = (f"{recorded.name}-{slot}" for slot in range(2))
    end_all_of(recorded, slot=1, machine=before[goes])
    cluster = f"{recorded.name}@rehearsal"
    killed = dataclasses.replace(new_record("down", tokens=(), stack=str(recorded.folder)), cli_ticks=0)
    write_record(recorded.home / "runs" / f"{cluster}.json", killed)
    refused = recorded.run("extend", "1h", "--cluster", cluster)
    assert refused.exit_code == 1, refused.text
    assert f"the last down was interrupted; next: clusterctl down --cluster {cluster}\n" in refused.stderr
    assert "is half gone, as after an early end or an interrupted down" in refused.stderr
    assert f"The deadline was not moved; clusterctl down {recorded.folder} ends the rest" in refused.stderr
    recorded.up()
    after = recorded.instance_ids()
    assert after[stays] == before[stays]
    assert instances(recorded) == sorted(after.values())
    recorded.down()
    assert_gone(recorded)


def end_all_of(cluster: Rehearsed, *, slot: int, machine: str) -> None:
    """Ends a slot's machine and what it has beside it, past the state."""
    ec2 = clients_of(cluster.env).ec2
    of_slot: list[FilterTypeDef] = [{"Name": f"tag:{SLOT_TAG}", "Values": [str(slot)]}]
    ec2.terminate_instances(InstanceIds=[machine])
    wait_until(lambda: machine not in instances(cluster), what="the machine is gone", timeout_s=30)
    for address in ec2.describe_addresses(Filters=of_slot)["Addresses"]:
        ec2.release_address(AllocationId=address["AllocationId"])
    for template in ec2.describe_launch_templates(Filters=of_slot)["LaunchTemplates"]:
        ec2.delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])


def test_nodes_of_an_up_that_was_cut_off_outlive_the_next_one_that_fails(recorded: Rehearsed) -> None:
    """They may be in use: only what the failed `up` made itself is ended."""
    recorded.keep_steps()
    quick = {"capacity": {"p5.48xlarge": 2}}
    recorded.write(machines="none", settings={**quick, "latency_ms": 200}, access=PUBLIC)
    quiet = subprocess.DEVNULL
    argv = [CLUSTERCTL, "up", str(recorded.folder)]
    with subprocess.Popen(argv, env=recorded.env, stdin=quiet, stdout=quiet, stderr=quiet) as child:
        wait_until(lambda: made(recorded) != [], what="the state has an instance", timeout_s=150)
        for pid in victims_of("both", recorded, cli=child.pid):
            os.kill(pid, signal.SIGKILL)
    cut_off = made(recorded)
    recorded.write(machines="none", settings=quick)
    refused = recorded.run("up", str(recorded.folder), "--nodes", "3")
    assert refused.exit_code == 1, refused.text
    assert "InsufficientInstanceCapacity" in refused.stderr
    assert "ran on" in refused.stderr
    assert set(cut_off) <= set(instances(recorded))
    recorded.up()
    assert len(instances(recorded)) == 2
    assert set(cut_off) <= set(instances(recorded))


def is_one_made(logs: Path) -> bool:
    """Whether the log of an `up`'s second run has an instance that was made."""
    second = sorted(logs.glob("*-up-*.jsonl"))[1:]
    lines = [line for path in second for line in path.read_bytes().splitlines() if b'"resOutputsEvent"' in line]
    return any(INSTANCE.encode() in line for line in lines)


def test_machines_of_a_large_up_that_was_cut_off_are_found_without_the_state(recorded: Rehearsed) -> None:
    """The run that makes many machines writes its state at its end: killed, AWS's tags alone know of them."""
    recorded.keep_steps()
    quiet = subprocess.DEVNULL
    argv = [CLUSTERCTL, "up", str(recorded.folder), "--nodes", "33"]
    with subprocess.Popen(argv, env=recorded.env, stdin=quiet, stdout=quiet, stderr=quiet) as child:
        wait_until(lambda: is_one_made(recorded.home / "log"), what="an instance is made", timeout_s=150)
        for pid in victims_of("both", recorded, cli=child.pid):
            os.kill(pid, signal.SIGKILL)
    assert made(recorded) == []
    (recorded.home / "runs" / f"{recorded.name}@rehearsal.json").unlink()  # it was typed on another computer
    cut_off = instances(recorded)
    done = recorded.run("up", str(recorded.folder), "--nodes", "33")
    assert done.exit_code == 0, done.text
    foretold = [line for line in done.stderr.splitlines() if line.startswith("  ends     ")]
    assert foretold, done.stderr
    assert done.stderr.index(foretold[-1]) < done.stderr.index("ending instance")
    ids = recorded.instance_ids()
    assert len(ids) == 33
    assert instances(recorded) == sorted(ids.values())
    assert not set(cut_off) & set(ids.values())
    recorded.down()
    assert_gone(recorded)


def test_credentials_that_end_half_way_are_told_and_nothing_is_lost(recorded: Rehearsed) -> None:
    """What was made is AWS's until the person has credentials again; the next `up` and `down` know all of it."""
    recorded.write(machines="none", settings={"latency_ms": 500}, access=PUBLIC)
    quiet = subprocess.DEVNULL
    argv = [CLUSTERCTL, "up", str(recorded.folder)]
    with subprocess.Popen(
        argv, env=recorded.env, stdin=quiet, stdout=quiet, stderr=subprocess.PIPE, text=True
    ) as child:
        wait_until(lambda: bool(reservations(recorded)), what="a place is paid for", timeout_s=150)
        with RegionClient(rehearsal_home(recorded.env)) as region:  # the verb would come when all is made
            region.ask("fault", {"verb": "expire-credentials", "args": []})
        _, stderr = child.communicate(timeout=180)
    assert child.returncode == 1, stderr
    assert "ExpiredToken" in stderr
    assert len(reservations(recorded)) == 1, "nobody may end it meanwhile"
    assert not instances(recorded), stderr
    assert "what was made is still there, and bills, also places that are reserved and empty" in stderr
    refused = recorded.run("extend", "1h")
    assert refused.exit_code == 1, refused.text
    assert (
        "The security token included in the request is expired: log in again\n  next: aws sso login\n" in refused.stderr
    )
    recorded.fault("expire-credentials", "off")
    recorded.write(machines="none", settings={"latency_ms": 0})
    recorded.up()
    assert len(instances(recorded)) == 2
    recorded.down()
    assert_gone(recorded)


def reservations(cluster: Rehearsed) -> list[str]:
    """The ids of those that the region has, whatever the state says."""
    return [row.id for row in cluster.resources() if row.token.endswith(":CapacityReservation")]
