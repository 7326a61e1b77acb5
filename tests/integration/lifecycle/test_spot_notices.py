"""AWS wants spot machines back: what their nodes do about it, what `status` says, and how a machine ends."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any  # parsed JSON

import pytest

from tests.integration.rehearsed import CLUSTERCTL, Rehearsed, rehearsed, wait_until

NOTICE_S = 60
"""Less than AWS's two minutes, but time for all checks on a busy computer."""
HEARD_S = 40.0
"""A node asks every five seconds."""
LATE_S = 15.0
HOOKS = """\
mkdir -p /etc/clusterctl/hooks
cat >/etc/clusterctl/hooks/pre-terminate <<'END'
#!/bin/sh
echo "$CLUSTERCTL_END_REASON, in $CLUSTERCTL_ENDS_IN_S"
END
cat >/etc/clusterctl/hooks/rebalance <<'END'
#!/bin/sh
echo "noticed $CLUSTERCTL_NOTICE_TIME"
END
chmod +x /etc/clusterctl/hooks/*"""
ASKS = """\
cat >/tmp/asks <<'END'
trap 'echo signalled >>/tmp/signalled' USR1
touch /run/clusterctl/warn/$$ /tmp/asked
while :; do sleep 0.2; done
END
setsid sh /tmp/asks >/dev/null 2>&1 </dev/null &
while [ ! -e /tmp/asked ]; do sleep 0.1; done"""
"""A process that asks for the signal and writes down each one that comes."""
BUCKET = {
    "storage": [{"mount": "/models", "s3": {"bucket": "models", "writable": True}}],
    "workflow_storage": "s3://models/flows",
}
WORKFLOW = """\
workflow:
  name: reclaimed
  groups:
  - name: g
    ignoreNonleadStatus: false
    tasks:
    - {name: a, lead: true, image: any, command: [sleep, "600"]}
    - name: b
      image: any
      command: [sh, -c]
      args: ["trap 'echo last >>{{output}}/model; exit 0' TERM; echo made >{{output}}/model; sleep 600 & wait"]
      outputs: [{dataset: {name: model, regex: model}}]
"""
READING = """\
workflow:
  name: reading
  tasks:
  - name: first
    image: any
    command: [sh, -c]
    args: ["cat {{input:0}}/model >{{output}}/copy"]
    inputs: [{dataset: {name: "model:1"}}]
  - {name: second, image: any, command: [cat, "{{input:first}}/copy"], inputs: [{task: first}]}
"""


@pytest.fixture(params=["nspawn", "process"])
def spot(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rehearsed]:
    """Two spot machines, up, of either kind."""
    if request.param == "nspawn" and os.geteuid() != 0:
        pytest.fail("these tests boot systemd-nspawn machines: run them as root")
    more: dict[str, Any] = BUCKET if request.param == "nspawn" else {}  # process machines mount nothing
    with rehearsed(tmp_path, machines=request.param, nodes=2, capacity="spot", **more) as cluster:
        cluster.up()
        yield cluster


def test_a_recommendation_marks_a_node_and_a_notice_is_followed_by_its_end(spot: Rehearsed) -> None:
    name = f"{spot.name}-1"
    on_node(spot, "sudo", "sh", "-c", HOOKS)
    on_node(spot, "sh", "-c", ASKS)

    spot.fault("rebalance", name)
    wait_until(has_heard(spot, "rebalance"), what=f"{name} has heard of it", timeout_s=HEARD_S)
    wait_until(is_marked(spot, "rebalance"), what=f"{name} is marked", timeout_s=HEARD_S)
    assert log(spot, "rebalance").startswith("noticed 20")
    assert "pre-terminate" not in on_node(spot, "ls", "/var/log/clusterctl")

    has_bucket = "workflow_storage" in spot.config
    with submitted(spot) if has_bucket else nullcontext() as workflow:
        spot.fault("interrupt", name, str(NOTICE_S))
        wait_until(has_heard(spot, "interruption"), what=f"{name} has heard of it", timeout_s=HEARD_S)
        wait_until(is_marked(spot, "interruption"), what=f"{name} is marked", timeout_s=HEARD_S)
        if workflow is not None:
            _, stderr = workflow.communicate(timeout=HEARD_S)
            assert workflow.returncode == 143, stderr
            assert "group g: failed because of b" in stderr
    if not has_bucket:  # what nodes have put into buckets lives as long as the region's process
        spot.fault("stop-region")  # the next command starts it again
    row = spot.nodes()[name]
    assert (row["state"], row["note"].split(" at ")[0]) == ("ready", "AWS takes it back")
    hook_log = log(spot, "pre-terminate")
    assert hook_log.count("AWS takes this spot machine back at ") == 1, hook_log
    assert 0 < int(hook_log.split()[-1]) <= NOTICE_S, "the time that was left"
    assert on_node(spot, "cat", "/tmp/signalled") == "signalled\n"
    if has_bucket:
        assert read_by_another(spot) == ["[second] made", "[second] last"]

    gone = lambda: all(found.id != row["instance_id"] for found in spot.resources())  # noqa: E731
    wait_until(gone, what=f"{name} is gone", timeout_s=NOTICE_S + LATE_S)
    wait_until(is_gone(spot), what="status says so", timeout_s=LATE_S)
    late_s = ended_at(spot) - datetime.fromisoformat(row["notice"]["time"]).timestamp()
    assert 0 <= late_s < LATE_S, "AWS ended it, at its time"
    assert "Server.SpotInstanceTermination" in spot.nodes()[name]["note"]
    assert spot.nodes()[f"{spot.name}-0"]["state"] == "ready"

    spot.up()
    new = spot.nodes()[name]
    assert (new["state"], new["notice"]) == ("ready", None)
    assert (new["private_ip"], new["instance_id"] != row["instance_id"]) == (row["private_ip"], True)


@contextmanager
def submitted(cluster: Rehearsed) -> Iterator[subprocess.Popen[str]]:
    """A workflow of which a task runs on slot 1, and has written its output."""
    (cluster.folder / "workflow.yaml").write_text(WORKFLOW)
    argv = [CLUSTERCTL, "workflow", "submit", "workflow.yaml", "--on-host"]
    with subprocess.Popen(argv, env=cluster.env, cwd=cluster.folder, stderr=subprocess.PIPE, text=True) as workflow:
        try:
            made = "ls /var/lib/clusterctl/jobs/reclaimed-*/work/output/model"
            is_made = lambda: cluster.run("ssh", "--node", "1", "--command", made).exit_code == 0  # noqa: E731
            wait_until(is_made, what="the task has written its output", timeout_s=30)
            yield workflow
        finally:
            workflow.kill()


def read_by_another(cluster: Rehearsed) -> list[str]:
    """What a task reads from another's output, which is a copy of the reclaimed task's dataset; both run on slot 0."""
    (cluster.folder / "reading.yaml").write_text(READING)
    cluster.ok("workflow", "submit", "reading.yaml", "--on-host")
    newest = json.loads(cluster.ok("workflow", "list", "--json"))[0]["id"]
    lines = cluster.ok("workflow", "logs", newest, "--task", "second").splitlines()
    return [f"[second] {line.split()[-1]}" for line in lines if "clusterctl:" not in line]


def on_node(cluster: Rehearsed, *argv: str) -> str:
    """What a command on slot 1 printed."""
    return cluster.ok("ssh", "--node", "1", "--", *argv)


def log(cluster: Rehearsed, hook: str) -> str:
    return on_node(cluster, "cat", f"/var/log/clusterctl/{hook}.log")


def has_heard(cluster: Rehearsed, kind: str) -> Callable[[], bool]:
    """Whether slot 1 knows of this notice."""
    return lambda: (cluster.agent_status(f"{cluster.name}-1").get("notice") or {}).get("kind") == kind


def is_marked(cluster: Rehearsed, kind: str) -> Callable[[], bool]:
    """Whether `status` has this notice of slot 1."""
    return lambda: ((cluster.nodes()[f"{cluster.name}-1"]["notice"] or {}).get("kind")) == kind


def is_gone(cluster: Rehearsed) -> Callable[[], bool]:
    return lambda: cluster.nodes()[f"{cluster.name}-1"]["state"] == "terminated"


def ended_at(cluster: Rehearsed) -> float:
    """When slot 1's machine ended, in whole seconds since 1970, by the simulated bill."""
    id = cluster.instance_ids()[f"{cluster.name}-1"]
    rows: list[dict[str, Any]] = json.loads(cluster.ok("rehearse", "bill", "--json"))["rows"]
    return datetime.fromisoformat(next(row["ended_at"] for row in rows if row["id"] == id)).timestamp()
