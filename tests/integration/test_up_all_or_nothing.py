"""`up` is all or nothing; stopped or refused, it says what exists and what to type."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.cloud.clients import Clients
from clusterctl.engine.run_file import new_record, only_run, write_record
from clusterctl.home import Home
from clusterctl_infra.names import SLOT_TAG
from clusterctl_rehearsal.home import rehearsal_home
from clusterctl_rehearsal.region.client import ensure_region

from tests.integration.kill_campaign import assert_gone, pids_of, steps_in, victims_of
from tests.integration.rehearsed import CLUSTERCTL, Rehearsed, rehearsed, wait_until

if TYPE_CHECKING:
    from types_boto3_ec2.type_defs import FilterTypeDef

PRIVATE = {"access": {"mode": "private"}}
INSTANCE = "aws:ec2/instance:Instance"
INVENTORY = "clusterctl:index:Inventory"


PUBLIC = {"mode": "public", "ssh_from": ["203.0.113.7/32"]}
RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Rehearsed]:
    """A stack of two nodes whose machines are only written down."""
    with rehearsed(tmp_path, machines="none", nodes=2, **PRIVATE) as cluster:
        yield cluster


def instances(cluster: Rehearsed) -> list[str]:
    listed = json.loads(cluster.ok("rehearse", "list", "--json"))["resources"]
    return sorted(row["id"] for row in listed if row["type"] == INSTANCE and row["state"] != "terminated")


def made(cluster: Rehearsed) -> list[str]:
    """The instances that the state's file knows, while the engine may be writing it."""
    state = Path(cluster.env["PULUMI_BACKEND_URL"].removeprefix("file://"))
    file = state / ".pulumi" / "stacks" / cluster.name / "dev.json"
    try:
        rows = json.loads(file.read_text())["checkpoint"]["latest"]["resources"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return sorted(row["id"] for row in rows if row["type"] == INSTANCE and row.get("id"))


def places(cluster: Rehearsed) -> int:
    rows = json.loads(cluster.pulumi("stack", "export").stdout)["deployment"]["resources"]
    (reservation,) = (row for row in rows if row["type"] == RESERVATION)
    return int(reservation["inputs"]["instanceCount"])


def test_elastic_addresses_are_counted_before_anything_is_made(recorded: Rehearsed) -> None:
    recorded.write(machines="none", settings={"quotas": {"addresses": 1}}, access=PUBLIC)
    refused = recorded.run("up", str(recorded.folder))
    assert refused.exit_code == 1, refused.text
    assert "AddressLimitExceeded: the cluster needs 2 elastic IPs" in refused.stderr
    assert "next: clusterctl rehearse fault quota addresses=2" in refused.stderr
    assert json.loads(recorded.ok("rehearse", "list", "--json"))["resources"] == []
    assert recorded.pulumi("stack", "export").exit_code != 0, "not even a stack was begun"
    assert recorded.run("rehearse", "fault", "quota", "addreses=2").exit_code == 2
    assert recorded.run("rehearse", "fault", "kill", f"{recorded.name}-7").exit_code == 3
    recorded.fault("quota", "addresses=2")
    recorded.up()
    assert len(instances(recorded)) == 2


def test_a_cluster_that_cannot_grow_keeps_its_old_size(recorded: Rehearsed) -> None:
    recorded.write(machines="none", settings={"capacity": {"p5.48xlarge": 2}})
    recorded.up()
    before = recorded.instance_ids()
    refused = recorded.run("up", str(recorded.folder), "--nodes", "3")
    assert refused.exit_code == 1, refused.text
    assert refused.stderr.count("InsufficientInstanceCapacity") == 1, refused.stderr
    assert "2 nodes" in refused.stderr
    assert recorded.instance_ids() == before
    assert instances(recorded) == sorted(before.values())
    recorded.up()
    assert recorded.instance_ids() == before, "a later up without --nodes is about the size there is"
    recorded.write(machines="none", settings={"capacity": {"p5.48xlarge": 3}})
    recorded.up("--nodes", "3")
    assert set(before.values()) < set(recorded.instance_ids().values())


def test_a_new_cluster_without_room_leaves_nothing_and_comes_later(recorded: Rehearsed) -> None:
    recorded.write(machines="none", settings={"capacity": {"p5.48xlarge": 1}})
    refused = recorded.run("up", str(recorded.folder), "--nodes", "3")
    assert refused.exit_code == 1, refused.text
    assert refused.stderr.count("InsufficientInstanceCapacity") == 1, refused.stderr
    assert json.loads(recorded.ok("rehearse", "list", "--json"))["resources"] == []
    recorded.write(machines="none", settings={"capacity": {"p5.48xlarge": 2}})
    recorded.up()
    assert len(instances(recorded)) == 2


def test_a_refused_up_leaves_no_trace_on_this_computer(recorded: Rehearsed) -> None:
    recorded.write(machines="none", caps={"runtime": "1h", "price_usd_per_hour": 1})
    refused = recorded.run("up", str(recorded.folder), "--nodes", "3")
    assert refused.exit_code == 2, refused.text
    assert not list((recorded.home / "runs").glob("*.json"))
    assert not (recorded.folder / "Pulumi.dev.yaml").exists()


def test_an_up_whose_engine_finds_no_plugin_says_that_nothing_was_made(recorded: Rehearsed) -> None:
    project = recorded.folder / "Pulumi.yaml"
    project.write_text(re.sub("path: .*/infra/plugin", "path: ../nowhere", project.read_text()))
    failed = recorded.run("up", str(recorded.folder))
    assert failed.exit_code == 1, failed.text
    assert "Nothing was made: no node runs, nothing bills" in failed.stderr
    assert "ndoing" not in failed.stderr
    assert f"next: ${{EDITOR:-nano}} {project}" in failed.stderr
    assert not list((recorded.home / "runs").glob("*.json"))


def test_fewer_nodes_while_one_that_stays_is_dead(recorded: Rehearsed) -> None:
    recorded.up("--nodes", "3")
    before = recorded.instance_ids()
    dead, stays, goes = (f"{recorded.name}-{slot}" for slot in range(3))
    recorded.fault("kill", dead)
    told = recorded.run("up", str(recorded.folder), "--nodes", "2").stderr
    assert f"  ends     {goes}: --nodes says 2 nodes\n" in told
    after = recorded.instance_ids()
    assert set(after) == {dead, stays}
    assert after[stays] == before[stays]
    assert instances(recorded) == sorted(after.values())
    assert before[goes] not in instances(recorded)
    assert places(recorded) == 2, "no empty place is paid for"
    with only_run(Home(path=recorded.home), f"{recorded.name}@rehearsal", verb="extend"):
        refused = recorded.run("rehearse", "clean", recorded.name)
    assert refused.exit_code == 1, refused.text
    assert f"clusterctl extend is changing {recorded.name}@rehearsal: started by" in refused.stderr
    assert instances(recorded) == sorted(after.values())


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
    assert f"the last down has not come to its end; next: clusterctl down --cluster {cluster}\n" in refused.stderr
    assert "is half gone, as after a down that was cut off" in refused.stderr
    assert f"No deadline was moved; clusterctl down {recorded.folder} ends the rest" in refused.stderr
    recorded.up()
    after = recorded.instance_ids()
    assert after[stays] == before[stays]
    assert instances(recorded) == sorted(after.values())
    recorded.down()
    assert_gone(recorded)


def end_all_of(cluster: Rehearsed, *, slot: int, machine: str) -> None:
    """Ends a slot's machine and what it has beside it, past the state."""
    endpoint = str(ensure_region(rehearsal_home(cluster.env))["endpoint"])
    ec2 = Clients(region="us-west-2", endpoint_url=endpoint).ec2
    of_slot: list[FilterTypeDef] = [{"Name": f"tag:{SLOT_TAG}", "Values": [str(slot)]}]
    ec2.terminate_instances(InstanceIds=[machine])
    wait_until(lambda: machine not in instances(cluster), what="the machine is gone", timeout_s=30)
    for address in ec2.describe_addresses(Filters=of_slot)["Addresses"]:
        ec2.release_address(AllocationId=address["AllocationId"])
    for template in ec2.describe_launch_templates(Filters=of_slot)["LaunchTemplates"]:
        ec2.delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])


def test_nodes_of_an_up_that_was_cut_off_outlive_the_next_one_that_fails(recorded: Rehearsed) -> None:
    """They may be in use: only what the failed `up` made itself is ended."""
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
    """Whether the second run of an `up` tells of an instance that was made."""
    second = sorted(logs.glob("*-up-*.jsonl"))[1:]
    lines = [line for path in second for line in path.read_bytes().splitlines() if b'"resOutputsEvent"' in line]
    return any(INSTANCE.encode() in line for line in lines)


def test_machines_of_a_large_up_that_was_cut_off_are_found_without_the_state(recorded: Rehearsed) -> None:
    """The run that makes many machines writes its state at its end: killed, AWS's tags alone know of them."""
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


def test_ctrl_c_stops_the_engine_and_says_what_exists(recorded: Rehearsed) -> None:
    recorded.write(machines="none", settings={"latency_ms": 150})
    said = interrupted(recorded, "up", engine_verb="up", after_steps=20)
    assert f"clusterctl up {recorded.folder}" in said
    assert f"clusterctl down {recorded.folder}" in said
    assert not pids_of(recorded, lambda words: "pulumi" in " ".join(words))
    recorded.write(machines="none", settings={"latency_ms": 0})
    recorded.up()
    assert len(instances(recorded)) == 2

    recorded.write(machines="none", settings={"latency_ms": 150})
    said = interrupted(recorded, "down", engine_verb="destroy", after_steps=5)
    assert "stopped before everything was gone: what is left may bill" in said
    assert "no state knows it" not in said, "it went on with what the engine was stopped at"
    recorded.write(machines="none", settings={"latency_ms": 0})
    recorded.down()
    assert_gone(recorded)


def interrupted(cluster: Rehearsed, verb: str, *, engine_verb: str, after_steps: int) -> str:
    """What a command said that was ended by Ctrl-C while the engine worked."""
    with subprocess.Popen(
        [CLUSTERCTL, verb, str(cluster.folder)],
        env=cluster.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:

        def works() -> bool:
            return steps_in(cluster.home / "log", engine_verb) > after_steps or child.poll() is not None

        wait_until(works, what="the engine works", timeout_s=60)
        os.kill(child.pid, signal.SIGINT)
        _, said = child.communicate(timeout=60)
    assert child.returncode == 130, said
    return said


def test_a_changed_environment_is_a_new_membership_of_the_same_machines(recorded: Rehearsed) -> None:
    recorded.up()
    before = recorded.instance_ids()
    recorded.write(machines="none", env={"NCCL_DEBUG": "INFO"})
    done = recorded.run("up", str(recorded.folder))
    assert done.exit_code == 0, done.text
    assert "generation 2" in done.stderr
    assert recorded.instance_ids() == before


def test_a_second_down_says_that_there_is_nothing(recorded: Rehearsed) -> None:
    recorded.up()
    first = recorded.run("down", str(recorded.folder))
    (foretold,), (deleted,) = (re.findall(rf"(\d+) {word}", first.stderr) for word in ("resources", "deleted"))
    assert foretold == deleted
    again = recorded.run("down", str(recorded.folder))
    assert again.exit_code == 0
    assert "there is nothing" in again.text
    assert_gone(recorded)


def test_a_down_without_the_clusters_state_does_not_say_that_there_is_nothing(
    recorded: Rehearsed, tmp_path: Path
) -> None:
    recorded.up()
    elsewhere = {**recorded.env, "PULUMI_BACKEND_URL": f"file://{tmp_path}"}
    done = recorded.run("down", str(recorded.folder), env=elsewhere)
    assert done.exit_code == 4
    assert "this Pulumi backend has no state of it; has another one?" in done.stderr
    assert "bills its hourly price" in done.stderr
    assert "next: clusterctl reap --cluster " in done.stderr
    extended = recorded.run("extend", "1h", env=elsewhere)
    assert extended.exit_code == 3
    assert f"the Pulumi backend file://{tmp_path} has no state of it; has another one?" in extended.stderr
    file = recorded.home / "inventory" / f"{recorded.name}@rehearsal.json"
    known = file.read_bytes()
    recorded.down()
    file.write_bytes(known)
    done = recorded.run("down", str(recorded.folder), env=elsewhere)
    assert done.exit_code == 0, done.text
    assert "nor does anything of" in done.stderr
    assert file.read_bytes() == known, "the credentials may be another account's: it is not forgotten"


def test_a_cluster_is_ended_although_its_file_is_broken_now(recorded: Rehearsed) -> None:
    recorded.up()
    (recorded.folder / "cluster.yaml").write_text("nodes: [\n")
    recorded.down()
    assert_gone(recorded)


def test_files_that_no_state_knows_go_with_the_cluster(recorded: Rehearsed) -> None:
    """As an engine leaves them that is killed while it makes the inventory."""
    recorded.up()
    state = json.loads(recorded.pulumi("stack", "export").stdout)
    resources = state["deployment"]["resources"]
    (lost,) = [row["urn"] for row in resources if row["type"] == INVENTORY]
    for row in resources:
        row["dependencies"] = [urn for urn in row.get("dependencies", ()) if urn != lost]
        row.pop("propertyDependencies", None)
    state["deployment"]["resources"] = [row for row in resources if row["urn"] != lost]
    edited = recorded.folder / "edited.json"
    edited.write_text(json.dumps(state))
    assert recorded.pulumi("stack", "import", "--file", str(edited)).exit_code == 0
    recorded.down()
    assert_gone(recorded)


def test_another_name_in_the_file_does_not_make_another_cluster(recorded: Rehearsed) -> None:
    recorded.up()
    recorded.write(machines="none", name="another")
    refused = recorded.run("up", str(recorded.folder))
    assert refused.exit_code == 2, refused.text
    assert recorded.name in refused.stderr
    assert len(instances(recorded)) == 2


def test_a_second_stack_of_one_name_is_refused(recorded: Rehearsed) -> None:
    recorded.up()
    refused = recorded.run("up", str(recorded.folder), "--stack-name", "second")
    assert refused.exit_code == 1, refused.text
    assert "another cluster called" in refused.stderr
    assert len(instances(recorded)) == 2


def test_a_network_removed_behind_our_back_does_not_keep_down_from_ending(recorded: Rehearsed) -> None:
    recorded.up()
    recorded.fault("stop-region")
    recorded.fault("kill", f"{recorded.name}-0")
    recorded.down()
    assert_gone(recorded)


def test_a_lock_of_a_living_pulumi_is_respected_and_named(recorded: Rehearsed) -> None:
    recorded.up()
    state = Path(recorded.env["PULUMI_BACKEND_URL"].removeprefix("file://"))
    lock = state / ".pulumi" / "locks" / "organization" / recorded.name / "dev" / "somebody.json"
    lock.parent.mkdir(parents=True, exist_ok=True)
    host = os.uname().nodename
    now = datetime.now(UTC).isoformat()
    row = {"pid": os.getpid(), "username": "ada", "hostname": host, "timestamp": now}
    lock.write_text(json.dumps(row))
    refused = recorded.run("up", str(recorded.folder))
    assert refused.exit_code == 1, refused.text
    assert f"started by ada on {host} (pid {os.getpid()})" in refused.stderr
    lock.write_text(json.dumps({**row, "timestamp": "2020-11-21T10:00:00Z"}))  # the number is another process's now
    recorded.up()
