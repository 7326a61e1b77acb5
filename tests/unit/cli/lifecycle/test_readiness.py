"""What nodes report while they boot, how a person sees it, and the membership that nodes get."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any  # what cluster.yaml may say

import pytest
from clusterctl.cloud.instances import InstanceState
from clusterctl.lifecycle.membership import membership_file, membership_of, refusal_in
from clusterctl.lifecycle.node_following import LONGEST_RETRY_S, REHEARSED_WAIT_S, WaysIn, follow, way_by
from clusterctl.lifecycle.node_stage import (
    AWS_PHASE_S,
    AWS_READY_S,
    REHEARSAL_PHASE_S,
    REHEARSAL_READY_S,
    lost_slots,
    patience_of,
    what_helps,
)
from clusterctl.lifecycle.readiness import (
    NodeWatch,
    Patience,
    ReadyWatch,
    why_not_ready,
)
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.status.node_report import FAILED, READY, NodeReport, SpotNotice, parse_report
from clusterctl_bootstrap.mount_clients import LIMIT_S as CLIENTS_LIMIT_S
from clusterctl_bootstrap.node.hooks import TIMEOUT_S
from clusterctl_infra.keys import login_key
from clusterctl_infra.outputs import Inventory, InventorySsh

from tests.inventories import make_inventory
from tests.unit.infra.plan.plan_cases import a_config

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)


def test_a_status_line_is_read() -> None:
    error = {"phase": "network", "message": "no address", "log": ["a", "b"]}
    line = json.dumps(
        {"version": 1, "phase": "failed", "generation": 2, "since": "2026-11-21T12:00:00Z", "error": error}
    )
    assert parse_report(line) == NodeReport(
        phase="failed",
        generation=2,
        since=datetime(2026, 11, 21, 12, tzinfo=UTC),
        failed_phase="network",
        message="no address",
        log=("a", "b"),
    )


@pytest.mark.parametrize("output", ["x" * 100_000, "a\0b", "é" * 5_000])
def test_a_failure_is_read_whatever_its_script_printed(output: str) -> None:
    row = {"phase": "failed", "error": {"phase": "scripts", "message": output, "log": [output, "end"]}}
    report = parse_report(json.dumps(row))
    assert report is not None
    assert report.phase == FAILED
    assert report.message == output.replace("\0", "")[:4096]
    assert report.log == (report.message, "end")


def test_a_notice_of_aws_is_read() -> None:
    row = {"kind": "interruption", "time": "2026-11-21T12:02:00Z", "at": "2026-11-21T12:00:30Z"}
    report = parse_report(json.dumps({"phase": "ready", "notice": row}))
    assert report is not None
    assert report.notice == SpotNotice(kind="interruption", time=datetime(2026, 11, 21, 12, 2, tzinfo=UTC), at=NOW)
    taken_away = parse_report(json.dumps({"phase": "ready", "notice": None}))
    assert taken_away is not None
    assert taken_away.notice is None


@pytest.mark.parametrize("line", ["", "Welcome to Ubuntu", "[]", "5", "[" * 2000])
def test_a_line_that_is_no_status_is_none(line: str) -> None:
    assert parse_report(line) is None


def test_a_failed_node_is_named_with_phase_and_log() -> None:
    report = NodeReport(phase="failed", generation=0, failed_phase="network", message="no address", log=("l1", "l2"))
    watch = NodeWatch(slot=1, name="train-1", phase="failed", report=report, is_final=True)
    assert why_not_ready(watch, now=NOW) == ["train-1: failed in network: no address", "    l1", "    l2"]


def test_a_node_whose_boot_failed_is_helped_by_replacing_it() -> None:
    late = NodeWatch(slot=0, name="train-0")
    failed = [NodeWatch(slot=slot, name=f"train-{slot}", phase="failed", is_final=True) for slot in (1, 3)]
    assert what_helps([late], inventory()) == "clusterctl status --cluster train@rehearsal"
    assert what_helps([late, failed[0]], inventory()) == "clusterctl replace --node 1 --cluster train@rehearsal"
    command = "clusterctl replace --node 1 --cluster train@rehearsal  (then train-3 the same way)"
    assert what_helps(failed, inventory()) == command
    script = replace(failed[0], report=NodeReport(phase="failed", generation=0, failed_phase="scripts"))
    assert what_helps([script], inventory()).startswith("clusterctl up STACK --replace-failed  (replaces these nodes")
    lost = replace(failed[0], gone="terminated")
    assert what_helps([lost, failed[1]], inventory()) == "clusterctl up STACK"


def test_a_node_whose_machine_died_is_not_waited_for() -> None:
    """A replaced machine that AWS ended before does not count, nor does a machine that AWS does not show yet."""
    nodes = [replace(inventory().nodes[0], slot=slot, instance_id=f"i-{slot}") for slot in range(4)]
    watches = [NodeWatch(slot=slot, name=f"train-{slot}") for slot in range(4)]
    watches[2] = replace(watches[2], phase=FAILED, is_final=True)  # what the node itself reported counts more
    seen = [instance("i-0", "running"), instance("i-1", "terminated"), instance("i-2", "terminated")]
    seen.append(instance("i-before", "terminated"))
    found = lost_slots(watches, replace(inventory(), nodes=tuple(nodes)), seen)
    assert found == {1: "terminated: Server.InternalError"}
    gone = replace(watches[1], gone=found[1], is_final=True)
    assert why_not_ready(gone, now=NOW) == ["train-1: its machine is gone (terminated: Server.InternalError)"]
    assert not gone.is_ready


def test_a_node_that_was_ready_and_was_ended_meanwhile_is_not_called_ready() -> None:
    """As by a `reap --cluster` on another computer, which no `up` is told of."""
    nodes = tuple(replace(inventory().nodes[0], slot=slot, instance_id=f"i-{slot}") for slot in range(2))
    ready = [NodeWatch(slot=slot, name=f"train-{slot}", phase=READY, is_final=True) for slot in range(2)]
    seen = [instance("i-0", "running"), instance("i-1", "terminated")]
    found = lost_slots(ready, replace(inventory(), nodes=nodes), seen)
    assert found == {1: "terminated: Server.InternalError"}
    assert [node.is_ready for node in ready] == [True, True]
    assert not replace(ready[1], gone=found[1]).is_ready


def instance(id: str, state: str) -> InstanceState:
    reason = "Server.InternalError" if state == "terminated" else None
    return InstanceState(instance_id=id, slot=0, state=state, private_ip=None, public_ip=None, reason=reason)


def test_a_machine_that_aws_called_gone_stays_gone_though_its_node_is_still_tried(tmp_path: Path) -> None:
    changes: list[NodeWatch] = []
    watch = ReadyWatch(tmp_path / "no inventory", changed=changes.append)
    watch.start(0, "train-0")
    watch.lost(0, "terminated")
    assert [node.gone for node in watch.wait(Patience(usual_s=0.0), on_tick=lambda: None)] == ["terminated"]
    assert [node.is_final for node in changes] == [True]
    watch.lost(0, "shutting-down")
    assert [node.gone for node in watch.now()] == ["terminated"]
    watch.stop()


def test_a_slow_node_is_named_with_its_phase_and_time() -> None:
    report = NodeReport(phase="network", generation=0, since=datetime(2026, 11, 21, 12, tzinfo=UTC))
    watch = NodeWatch(slot=1, name="train-1", phase="network", report=report)
    assert why_not_ready(watch, now=NOW) == ["train-1: still in network for 30 s"]


def test_a_silent_node_is_named_with_why() -> None:
    watch = NodeWatch(slot=1, name="train-1", trouble="10.0.8.1:22: connection refused")
    assert why_not_ready(watch, now=NOW) == ["train-1: no answer (10.0.8.1:22: connection refused)"]


def test_a_ready_node_that_refused_the_membership_says_why() -> None:
    report = NodeReport(phase="ready", generation=3)
    watch = NodeWatch(
        slot=1, name="train-1", phase="ready", report=report, undelivered="generation 2 < 3", is_final=True
    )
    assert not watch.is_ready
    assert why_not_ready(watch, now=NOW) == ["train-1: ready, but without the membership: generation 2 < 3"]


def inventory() -> Inventory:
    return make_inventory(size=1, cluster="train@rehearsal", rehearsal=True, deadline="2026-11-21T14:00:00+02:00")


def test_the_membership_says_times_as_nodes_read_them() -> None:
    content = json.loads(membership_file(inventory(), slot_cidr="10.0.8.0/21", env={"A": "1"}, authorized_keys=None))
    assert content == {
        "version": 1,
        "cluster_id": "0123456789ab",
        "run": 1,
        "generation": 3,
        "nodes": 1,
        "slot_cidr": "10.0.8.0/21",
        "deadline": "2026-11-21T12:00:00Z",
        "env": {"A": "1"},
        "gpus_per_node": 8,
        "authorized_keys": None,
    }


def test_the_membership_says_how_long_a_node_may_be_alone_where_there_is_a_limit() -> None:
    """Left out otherwise: the same generation with more in it would be refused."""

    def limit_in_file(limit: timedelta | None) -> object:
        file = membership_file(inventory(), slot_cidr="10.0.8.0/21", env={}, authorized_keys=None, dead_man=limit)
        return json.loads(file).get("dead_man_s", "nothing")

    assert (limit_in_file(None), limit_in_file(timedelta(minutes=30))) == ("nothing", 1800)


def test_whoever_pushes_a_membership_pushes_all_that_the_configuration_says() -> None:
    config = a_config(env={"A": "1"}, caps={"idle": "45m", "dead_man": "30m"})
    membership = json.loads(membership_of(inventory(), config, slot_cidr="10.0.8.0/21"))
    assert (membership["idle_s"], membership["dead_man_s"], membership["env"]) == (2700, 1800, {"A": "1"})


ADAS_KEY = login_key(bytes(32)).public


@pytest.mark.parametrize("authorized_keys", [[ADAS_KEY], []])
def test_the_membership_has_the_keys_of_the_configuration_and_without_any_leaves_the_login_as_it_is(
    authorized_keys: list[str],
) -> None:
    config = a_config(access={"mode": "public", "ssh_from": ["203.0.113.7/32"], "authorized_keys": authorized_keys})
    membership = json.loads(membership_of(inventory(), config, slot_cidr="10.0.8.0/21"))
    assert membership["authorized_keys"] == (authorized_keys or None)


def test_the_membership_has_ranks_where_they_are_not_the_slots() -> None:
    """Left out otherwise: the same generation with more in it would be refused."""

    def ranks_in_file(*ranks: int) -> object:
        (node,) = inventory().nodes
        nodes = tuple(replace(node, slot=slot, rank=rank) for slot, rank in enumerate(ranks))
        file = membership_file(
            replace(inventory(), nodes=nodes[::-1]), slot_cidr="10.0.8.0/21", env={}, authorized_keys=None
        )
        return json.loads(file).get("ranks")

    assert (ranks_in_file(0, 1, 2), ranks_in_file(0, 2, 1)) == (None, [0, 2, 1])


@pytest.mark.parametrize(
    ("stdout", "stderr", "text"),
    [
        (b'{"ok": false, "error": "generation 2 is older"}', b"", "generation 2 is older"),
        (b"", b"sudo: a password is required\n", "sudo: a password is required"),
        (b"", b"", "clusterctl-node apply ended with 9"),
    ],
)
def test_a_nodes_refusal_is_told_in_its_words(stdout: bytes, stderr: bytes, text: str) -> None:
    assert refusal_in(stdout, stderr, 9) == text


@pytest.mark.parametrize(
    ("changes", "hooks"),
    [
        ({}, 0),
        ({"packages": ["htop"]}, 1),
        ({"scripts": ["setup.sh", {"run": "late.sh", "at": "after-ready"}]}, 1),
        ({"packages": ["htop", "jq"], "scripts": [{"run": "a.sh", "at": "before-mounts"}, "b.sh"]}, 3),
    ],
)
def test_a_node_is_waited_for_as_long_as_its_hooks_may_take(changes: dict[str, Any], hooks: int) -> None:
    config = a_config(**changes)
    for is_rehearsal, boot_s in ((True, REHEARSAL_READY_S), (False, AWS_READY_S)):
        patience = patience_of(config, is_rehearsal=is_rehearsal)
        assert (patience.usual_s, patience.hooks_s) == (boot_s, hooks * TIMEOUT_S)
        assert patience.phase_s == (REHEARSAL_PHASE_S if is_rehearsal else AWS_PHASE_S)


def test_clients_of_storage_may_be_installed_first_but_a_nodes_own_disks_need_none() -> None:
    own = patience_of(a_config(storage=[{"nvme": {}, "mount": "/scratch"}]), is_rehearsal=False)
    shared = patience_of(a_config(storage=[{"efs": {}, "mount": "/shared"}], packages=["htop"]), is_rehearsal=False)
    assert (own.hooks_s, shared.hooks_s) == (0, CLIENTS_LIMIT_S + TIMEOUT_S)


class NeverFinal:
    """A node of which nothing is known yet, for ever."""

    slot, is_final, scripts, membership = 0, False, None, None

    def reported(self, report: NodeReport) -> None:
        raise AssertionError(report)

    def troubled(self, why: str, *, failure: NodeFailure | None = None) -> None:
        raise AssertionError(why)

    def delivered(self, refusal: str | None) -> None:
        raise AssertionError(refusal)

    def applied(self, refusal: str | None) -> None:
        raise AssertionError(refusal)


def test_a_node_is_tried_again_after_a_second_however_often_it_was_tried(tmp_path: Path) -> None:
    steps = follow(NeverFinal(), WaysIn(tmp_path / "not written yet.json"))
    for _ in range(50):
        assert next(steps).until - time.monotonic() <= LONGEST_RETRY_S


def test_one_process_waits_for_a_rehearsed_node_that_boots() -> None:
    way = ("python", "connect.py", "machines", "train", "{host}", "{port}")
    rehearsed = replace(inventory(), ssh=InventorySsh(user="ubuntu", key_file=None, proxy_command=way))
    found = way_by(rehearsed)
    patient, deadlines = found.inventory, found.deadlines
    assert patient.ssh.proxy_command == (*way, "5")
    assert deadlines.greeting_s == Deadlines().greeting_s + REHEARSED_WAIT_S
    assert deadlines.total_s == Deadlines().total_s + REHEARSED_WAIT_S


@pytest.mark.parametrize("way", [None, ("ssh", "-W", "{host}:{port}", "bastion")])
def test_nodes_that_are_not_rehearsed_are_reached_as_the_inventory_says(way: tuple[str, ...] | None) -> None:
    there = replace(inventory(), rehearsal=False, ssh=InventorySsh(user="ubuntu", key_file=None, proxy_command=way))
    found = way_by(there)
    assert (found.inventory, found.deadlines) == (there, Deadlines())
