"""`up` is all or nothing; stopped or refused, it says what exists and what to type."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path

from clusterctl.cloud.deadline_resources import state_machines
from clusterctl.engine.run_file import only_run
from clusterctl.home import Home

from tests.integration.kill_campaign import assert_gone, pids_of, steps_in
from tests.integration.recorded_stack import PUBLIC, instances, places
from tests.integration.region_access import clients_of
from tests.integration.rehearsed import CLUSTERCTL, Rehearsed, wait_until


def test_quotas_are_asked_for_before_anything_is_made_and_never_of_what_lives(recorded: Rehearsed) -> None:
    recorded.write(machines="none", settings={"quotas": {"addresses": 1, "vcpus": 192}}, access=PUBLIC)
    too_few_elastic_addresses_are_reported_before_a_stack_is_begun(recorded)
    too_few_vcpus_are_reported_by_plan_and_by_up(recorded)
    assert recorded.run("plan", str(recorded.folder), "--online", "--fail-on", "warning").exit_code == 0
    recorded.up()
    assert len(instances(recorded)) == 2
    vcpus_are_asked_for_when_it_grows_and_not_when_it_stays(recorded)


def too_few_elastic_addresses_are_reported_before_a_stack_is_begun(recorded: Rehearsed) -> None:
    refused = recorded.run("up", str(recorded.folder))
    assert refused.exit_code == 1, refused.text
    assert "AddressLimitExceeded: the cluster needs 2 elastic IPs" in refused.stderr
    assert "next: clusterctl rehearse fault quota addresses=2" in refused.stderr
    assert recorded.resources() == []
    assert recorded.pulumi("stack", "export").exit_code != 0, "not even a stack was begun"
    assert recorded.run("rehearse", "fault", "quota", "addreses=2").exit_code == 2
    assert recorded.run("rehearse", "fault", "kill", f"{recorded.name}-7").exit_code == 3
    recorded.fault("quota", "addresses=3")  # of vCPUs alone there will be too few for three nodes


def too_few_vcpus_are_reported_by_plan_and_by_up(recorded: Rehearsed) -> None:
    refused = recorded.run("up", str(recorded.folder))
    assert refused.exit_code == 1, refused.text
    assert "VcpuLimitExceeded: 2 × p5.48xlarge are 384 vCPUs, and this account may have 192" in refused.stderr
    assert "next: clusterctl rehearse fault quota vcpus=384" in refused.stderr
    assert recorded.resources() == []
    online = recorded.run("plan", str(recorded.folder), "--online")
    assert (online.exit_code, "vCPU quota   error  2 × p5.48xlarge: 384" in online.stdout) == (1, True), online.text
    recorded.fault("quota", "vcpus=384")


def vcpus_are_asked_for_when_it_grows_and_not_when_it_stays(recorded: Rehearsed) -> None:
    before = recorded.instance_ids()
    grown = recorded.run("up", str(recorded.folder), "--nodes", "3")
    assert (grown.exit_code, "3 × p5.48xlarge are 576 vCPUs" in grown.stderr) == (1, True), grown.text
    recorded.fault("quota", "vcpus=192")
    recorded.up()
    assert recorded.instance_ids() == before


def test_a_cluster_grows_when_there_is_room_for_all_and_shrinks_beside_a_dead_node(ready: Rehearsed) -> None:
    without_room_for_a_third_node_it_keeps_its_old_size_and_with_room_it_grows(ready)
    one_that_is_dead_is_made_anew_while_another_goes(ready)
    no_clean_disturbs_an_extend_under_way(ready)


def without_room_for_a_third_node_it_keeps_its_old_size_and_with_room_it_grows(ready: Rehearsed) -> None:
    ready.write(machines="none", settings={"capacity": {"p5.48xlarge": 2}})
    before = ready.instance_ids()
    refused = ready.run("up", str(ready.folder), "--nodes", "3")
    assert refused.exit_code == 1, refused.text
    assert refused.stderr.count("InsufficientInstanceCapacity") == 1, refused.stderr
    assert "2 nodes" in refused.stderr
    assert ready.instance_ids() == before
    assert instances(ready) == sorted(before.values())
    ready.up()
    assert ready.instance_ids() == before, "a later up without --nodes is about the size there is"
    ready.write(machines="none", settings={"capacity": {"p5.48xlarge": 3}})
    ready.up("--nodes", "3")
    assert set(before.values()) < set(ready.instance_ids().values())


def one_that_is_dead_is_made_anew_while_another_goes(ready: Rehearsed) -> None:
    ready.write(machines="none")  # there is room for any number
    before = ready.instance_ids()
    dead, stays, goes = (f"{ready.name}-{slot}" for slot in range(3))
    ready.fault("kill", dead)
    stderr = ready.run("up", str(ready.folder), "--nodes", "2").stderr
    assert f"  ends     {goes}: --nodes says 2 nodes\n" in stderr
    after = ready.instance_ids()
    assert set(after) == {dead, stays}
    assert after[stays] == before[stays]
    assert instances(ready) == sorted(after.values())
    assert before[goes] not in instances(ready)
    assert places(ready) == 2, "no empty place is paid for"


def no_clean_disturbs_an_extend_under_way(ready: Rehearsed) -> None:
    before = instances(ready)
    with only_run(Home(path=ready.home), f"{ready.name}@rehearsal", verb="extend"):
        refused = ready.run("rehearse", "clean", ready.name)
    assert refused.exit_code == 1, refused.text
    assert f"clusterctl extend is changing {ready.name}@rehearsal: started by" in refused.stderr
    assert instances(ready) == before


def test_a_new_cluster_without_room_leaves_nothing_and_comes_when_there_is_some(recorded: Rehearsed) -> None:
    recorded.write(machines="none", settings={"capacity": {"p5.48xlarge": 1}})
    argv = [CLUSTERCTL, "up", str(recorded.folder), "--retry-until-up", "--for", "5m"]
    with subprocess.Popen(argv, env=recorded.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as up:
        assert up.stderr is not None
        first_try = [*takewhile(lambda line: not line.startswith("  next try in "), up.stderr)]
        left = recorded.resources()
        recorded.write(machines="none", settings={"capacity": {"p5.48xlarge": 2}})
        rest = up.stderr.read()
    assert "".join(first_try).count("InsufficientInstanceCapacity") == 1, first_try
    assert "Nothing was kept: no node runs, nothing bills" in first_try[-1]
    assert left == []
    assert up.returncode == 0, rest
    assert len(instances(recorded)) == 2


def test_a_rehearsal_asks_when_told_to(recorded: Rehearsed) -> None:
    refused = recorded.run("up", str(recorded.folder), "--ask")
    assert refused.exit_code == 2, refused.text
    assert "not agreed, since there is no terminal to ask at; nothing was changed" in refused.stderr
    assert recorded.resources() == []


def test_a_known_cluster_needs_no_folder(ready: Rehearsed) -> None:
    again = ready.run("up", "--cluster", ready.name)
    assert again.exit_code == 0, again.text
    assert ready.run("up", str(ready.folder), "--cluster", ready.name).exit_code == 2


def test_a_refused_up_leaves_no_trace_on_this_computer(recorded: Rehearsed) -> None:
    recorded.write(machines="none", caps={"runtime": "1h", "price_usd_per_hour": 1})
    config = recorded.folder / "Pulumi.dev.yaml"
    before = config.read_text()
    refused = recorded.run("up", str(recorded.folder), "--nodes", "3")
    assert refused.exit_code == 2, refused.text
    assert not list((recorded.home / "runs").glob("*.json"))
    assert config.read_text() == before


def test_an_up_whose_engine_finds_no_plugin_says_that_nothing_was_made(recorded: Rehearsed) -> None:
    project = recorded.folder / "Pulumi.yaml"
    project.write_text(re.sub("path: .*/infra/plugin", "path: ../nowhere", project.read_text()))
    failed = recorded.run("up", str(recorded.folder))
    assert failed.exit_code == 1, failed.text
    assert "Nothing was made: no node runs, nothing bills" in failed.stderr
    assert "ndoing" not in failed.stderr
    assert f"next: ${{EDITOR:-nano}} {project}" in failed.stderr
    assert not list((recorded.home / "runs").glob("*.json"))


def test_ctrl_c_stops_the_engine_and_says_what_exists(recorded: Rehearsed) -> None:
    recorded.write(machines="none", settings={"latency_ms": 150})
    stderr = interrupted(recorded, "up", engine_verb="up", after_steps=20)
    assert f"clusterctl up {recorded.folder}" in stderr
    assert f"clusterctl down {recorded.folder}" in stderr
    assert not pids_of(recorded, lambda words: "pulumi" in " ".join(words))
    recorded.write(machines="none", settings={"latency_ms": 0})
    recorded.up()
    assert len(instances(recorded)) == 2

    recorded.write(machines="none", settings={"latency_ms": 150})
    stderr = interrupted(recorded, "down", engine_verb="destroy", after_steps=5)
    assert "stopped before everything was gone: what is left may bill" in stderr
    assert "in no Pulumi state" not in stderr, "it went on with what the engine was stopped at"
    recorded.write(machines="none", settings={"latency_ms": 0})
    recorded.down()
    assert_gone(recorded)


def interrupted(cluster: Rehearsed, verb: str, *, engine_verb: str, after_steps: int) -> str:
    """The stderr of a command that Ctrl-C ended while the engine worked."""
    cluster.keep_steps()
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
        _, stderr = child.communicate(timeout=60)
    assert child.returncode == 130, stderr
    return stderr


def test_a_changed_environment_is_a_new_membership_of_the_same_machines(ready: Rehearsed) -> None:
    before = ready.instance_ids()
    ready.write(machines="none", env={"NCCL_DEBUG": "INFO"})
    done = ready.run("up", str(ready.folder))
    assert done.exit_code == 0, done.text
    assert "generation 2" in done.stderr
    assert ready.instance_ids() == before


def test_an_up_fails_where_nobody_can_say_that_aws_ends_the_nodes_at_the_deadline(ready: Rehearsed) -> None:
    clients = clients_of(ready.env)
    (machine,) = state_machines(clients, ready.inventory()["cluster_id"])
    clients.sfn.delete_state_machine(stateMachineArn=machine.id)
    unproven = ready.run("up", str(ready.folder))
    assert unproven.exit_code == 1, unproven.text
    assert f"WARNING: it is not known whether AWS would end {ready.name} at its deadline" in unproven.stderr
    assert f"next: clusterctl down --cluster {ready.name}@rehearsal" in unproven.stderr
    assert len(instances(ready)) == 2


def test_what_would_touch_another_cluster_or_somebodys_run_is_refused_and_changes_nothing(ready: Rehearsed) -> None:
    before = instances(ready)
    another_name_in_the_file_does_not_make_another_cluster(ready)
    a_second_stack_of_one_name_is_refused(ready)
    a_lock_of_a_living_pulumi_is_respected_and_named(ready)
    assert instances(ready) == before


def another_name_in_the_file_does_not_make_another_cluster(recorded: Rehearsed) -> None:
    recorded.write(machines="none", name="another")
    refused = recorded.run("up", str(recorded.folder))
    assert refused.exit_code == 2, refused.text
    assert recorded.name in refused.stderr
    assert len(instances(recorded)) == 2
    recorded.write(machines="none", name=recorded.name)


def a_second_stack_of_one_name_is_refused(recorded: Rehearsed) -> None:
    refused = recorded.run("up", str(recorded.folder), "--stack-name", "second")
    assert refused.exit_code == 1, refused.text
    assert "another cluster called" in refused.stderr
    assert len(instances(recorded)) == 2


def a_lock_of_a_living_pulumi_is_respected_and_named(recorded: Rehearsed) -> None:
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
    again = recorded.run("up", str(recorded.folder))
    assert (again.exit_code, "nothing changed" in again.stderr) == (0, True), again.text
