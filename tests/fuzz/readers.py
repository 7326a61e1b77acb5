"""Each reader of what somebody else wrote, with a sound input; what it raises beyond our own failures is an escape."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any  # JSON values

from clusterctl.cloud.instances import instance_state
from clusterctl.cost.sighting_file import read_reserved, read_seen
from clusterctl.engine.run_file import read_record
from clusterctl.engine.state import deadline_in, generation_in, identity_in, ledger_in, parse_state
from clusterctl.jobs.events import event_json, event_row, merged_events
from clusterctl.jobs.following import JobFollowing, OutputLine
from clusterctl.jobs.job_state import job_states, merged
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.node_answers import answer_of as job_answer_of
from clusterctl.jobs.shown import line_json, line_text, state_json, state_text, table_row
from clusterctl.logs.show import log_head, log_json
from clusterctl.logs.stream import LogLine, NodeStream
from clusterctl.probes.ask import read_script
from clusterctl.probes.readings import NodeAnswer, readings_of
from clusterctl.probes.report import judged
from clusterctl.probes.sweep import PROBES
from clusterctl.probes.view import summary, sweep_json, sweep_text
from clusterctl.ssh.any_inventory import read_any_inventory
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.results import NodeResult
from clusterctl.status.facts import Facts
from clusterctl.status.judge import judge
from clusterctl.status.ledger import read_ledger
from clusterctl.status.node_answers import answer_of
from clusterctl.top.board import Board
from clusterctl.top.feed import SampleLines
from clusterctl.top.frame import gpu_lines, layout_for, node_line, text_of
from clusterctl.workflows.jobs_of_tasks import table_row as workflow_row
from clusterctl.workflows.jobs_of_tasks import workflow_json, workflow_text, workflows_of
from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.names import IDENTITY_TYPE, MEMBERSHIP_TYPE, SLOT_TAG
from clusterctl_infra.outputs import Inventory, inventory_from_json, inventory_to_json, read_inventory
from clusterctl_infra.provider.identity_resource import IdentityResource
from clusterctl_infra.provider.local_home import LocalHome
from clusterctl_infra.provider.membership_resource import MembershipResource
from clusterctl_infra.strict_json import NotAsExpected

from tests.fuzz.job_samples import JOB_ROWS, JOBS, WORKFLOW_JOBS
from tests.fuzz.mutation import mutated, with_evil_words

EXPECTED = (ClusterctlError, NodeFailure, NotAsExpected)
AT = "2026-11-21T10:00:00+00:00"
NOW = datetime(2026, 11, 21, 11, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Reader:
    """What reads, and a sound input for it: text, or a JSON value."""

    read: Callable[[bytes], object]
    sound: Any


@dataclass(frozen=True)
class Escape:
    """An input that a reader failed for in no way of ours."""

    reader: str
    data: bytes
    error: Exception


def campaign(readers: Mapping[str, Reader], *, inputs: int, seed: int) -> list[Escape]:
    """The escapes among so many inputs, each reader in turn."""
    random, escapes, names = Random(seed), [], sorted(readers)
    for number in range(inputs):
        name = names[number % len(names)]
        reader = readers[name]
        sound = reader.sound
        data = with_evil_words(sound, random).encode() if isinstance(sound, str) else mutated(sound, random)
        try:
            reader.read(data)
        except EXPECTED:
            continue
        except Exception as e:  # noqa: BLE001 what is looked for
            escapes.append(Escape(name, data, e))
    return escapes


def all_readers(folder: Path) -> dict[str, Reader]:
    """By name; `folder` takes the files that some of them read."""
    inventory = _inventory()
    return {
        "status of a node": Reader(lambda data: _status(data, inventory), REPORT),
        "answers of probes": Reader(lambda data: _sweep(data, inventory), PROBED),
        "answers about jobs": Reader(_job_answers, JOBS),
        "workflows of jobs": Reader(_workflows, WORKFLOW_JOBS),
        "rows of a job": Reader(_job_rows, JOB_ROWS),
        "sample of top": Reader(lambda data: _top(data, inventory), SAMPLE),
        "rows of the log reader": Reader(lambda data: _logs(data, inventory), ROWS),
        "instance of AWS": Reader(_instance, {"slot": "3", "reason": "User initiated (2026-01-31 23:59:59 GMT)"}),
        "state": Reader(_state, STATE),
        "inventory": Reader(_of_file(folder, read_inventory), inventory_to_json(inventory)),
        "inventory of a person": Reader(
            _of_file(folder, lambda path: read_any_inventory(path, ssh_config=folder / "none")), MACHINES
        ),
        "ledger": Reader(_of_file(folder, read_ledger), {"opened": [SPAN, STANDING], "closed": [SPAN]}),
        "observed": Reader(_of_file(folder, lambda path: (read_seen(path), read_reserved(path))), SEEN | RESERVED),
        "run": Reader(_of_file(folder, read_record), RUN),
        "identity": Reader(lambda data: _checked(data, folder), IDENTITY),
        "membership": Reader(lambda data: _checked(data, folder), MEMBERSHIP),
    }


def _status(data: bytes, inventory: Inventory) -> None:
    result = NodeResult(
        slot=0, name="train-0", exit_code=0, signal=None, failure=None, stdout=data, stderr=b"", duration_s=1.0
    )
    json.dumps([str(node) for node in judge(inventory, Facts(now=NOW, instances=None, answers={0: answer_of(result)}))])


def _sweep(data: bytes, inventory: Inventory) -> None:
    readings = readings_of(read_script(data.decode(errors="replace"), tuple(PROBES.values())))
    answer = NodeAnswer(node=inventory.nodes[0], readings=readings, failure=None, asked_at_s=1e9, answered_at_s=1e9 + 1)
    report = judged(inventory, (answer, answer))
    json.dumps(sweep_json(report))
    sweep_text(report, probes=list(PROBES), is_chosen=True)
    summary(report)


def _top(data: bytes, inventory: Inventory) -> None:
    board = Board(inventory.nodes)
    lines = SampleLines(board, 0)
    lines.feed(json.dumps(SAMPLE).encode() + b"\n")
    lines.feed(data + b"\n")
    state = board.states()[0]
    text_of(node_line(state, 8, layout_for(8), 1e9))
    for line in gpu_lines(state, state.heard_at_s or 0.0):
        text_of(line)


def _job_answers(data: bytes) -> None:
    node = _inventory().nodes[0]
    result = NodeResult(
        slot=0, name="train-0", exit_code=0, signal=None, failure=None, stdout=data, stderr=b"", duration_s=1.0
    )
    for verb in ("facts", "take", "pull", "lock", "ready", "cancel"):
        job_answer_of(verb, node, result)
    told = job_answer_of("events", node, result)
    for event in merged_events({0: told.words.get("events", ()) if told.error is None else ()}):
        event_row(event)
        json.dumps(event_json(event))
    answer = job_answer_of("list", node, result)
    if answer.error is None and "jobs" in answer.words:
        for job in job_states({0: answer.words}):
            table_row(job)
            state_text(job)
            json.dumps(state_json(job))


def _workflows(data: bytes) -> None:
    result = NodeResult(
        slot=0, name="train-0", exit_code=0, signal=None, failure=None, stdout=data, stderr=b"", duration_s=1.0
    )
    answer = job_answer_of("list", _inventory().nodes[0], result)
    if answer.error is None and "jobs" in answer.words:
        for workflow in workflows_of(job_states({0: answer.words})):
            workflow_row(workflow)
            workflow_text(workflow)
            json.dumps(workflow_json(workflow))


def _job_rows(data: bytes) -> None:
    inventory = _inventory()
    keys = LoginKeys(keys=(), described="none")
    nodes = JobNodes(inventory=inventory, keys=keys, deadlines=Deadlines())
    following = JobFollowing(nodes, inventory.nodes[:1], job="train", attempt=1)
    try:
        rows = json.loads(data)
    except (ValueError, RecursionError):
        rows = None
    parts = [json.dumps(row).encode() for row in rows] if isinstance(rows, list) else [data]
    following._hear(inventory.nodes[0], b"\n".join(parts) + b"\n")
    while not following._arrived.empty():
        item = following._arrived.get()
        if isinstance(item, OutputLine):
            line_text(item, has_ranks=True)
            json.dumps(line_json(item))
    job = merged(JOBS["jobs"][0]["spec"], following.last_states)
    json.dumps(state_json(job))


def _logs(data: bytes, inventory: Inventory) -> None:
    lines: list[LogLine] = []
    stream = NodeStream(inventory.nodes[0], on_line=lines.append, on_trouble=lambda trouble: None)
    try:
        rows = json.loads(data)
    except (ValueError, RecursionError):
        rows = None
    parts = [json.dumps(row).encode() for row in rows] if isinstance(rows, list) else [data]
    stream.feed(b"\n".join(parts) + b"\n")
    for line in lines:
        log_head(line, has_sources=True)
        json.dumps(log_json(line))


def _instance(data: bytes) -> None:
    """Tags are people's, the rest is typed by AWS's SDK."""
    try:
        row = json.loads(data)
        texts = {key: str(row.get(key)) for key in ("slot", "reason")}
    except (ValueError, RecursionError, AttributeError):
        texts = {"slot": data.decode(errors="replace"), "reason": data.decode(errors="replace")}
    instance_state(
        {
            "InstanceId": "i-1",
            "State": {"Name": "terminated"},
            "Tags": [{"Key": SLOT_TAG, "Value": texts["slot"]}],
            "StateTransitionReason": texts["reason"],
        }
    )


def _state(data: bytes) -> None:
    state = parse_state(data.decode(errors="replace"))
    for read in (generation_in, ledger_in, deadline_in, lambda state: state.instances):
        read(state)
    identity_in(state, region="us-west-2")


def _of_file(folder: Path, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    path = folder / "input.json"

    def written(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return written


def _checked(data: bytes, folder: Path) -> None:
    """As the engine hands inputs over: always an object."""
    try:
        row = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(row, dict):
        return
    home = LocalHome(root=folder)
    if "image_spec" in row:
        IdentityResource(home=home, environ={}, now=lambda: NOW).check(row)
    else:
        MembershipResource(home=home, now=lambda: NOW).check(row)


def _inventory() -> Inventory:
    node = {"slot": 0, "rank": 0, "name": "train-0", "private_ip": "10.0.8.10", "host_public_key": "ssh-ed25519 AAAA"}
    ssh = {"user": "ubuntu", "key_file": None, "proxy_command": ["nc", "{host}", "{port}"], "public_keys": ["k"]}
    texts = ("name", "cluster", "cluster_id", "region", "zone", "owner", "image_id", "instance_type", "deadline_reason")
    counts = {"version": 1, "run": 1, "gpus_per_node": 8, "generation": 3, "usd_per_hour": 55.0, "budget_usd": None}
    times = {"started_at": AT, "deadline": "2026-11-22T10:00:00+00:00"}
    row = {**dict.fromkeys(texts, "train"), **counts, **times, "rehearsal": False, "ssh": ssh, "nodes": [node]}
    return inventory_from_json(row, source="fuzz")


REPORT = {
    "phase": "ready",
    "generation": 3,
    "since": AT,
    "error": {"phase": "network", "message": "no address", "log": ["a", "b"]},
    "checks": [{"name": "interfaces", "verdict": "ok", "detail": "4 of 4"}],
    "idle": {"at": AT, "limit_s": 1800, "since": AT, "keeps": ["train-1: 8 GPU processes"], "ends": False},
    "notice": {"kind": "interruption", "time": AT, "at": AT},
    "watch": {"idle": "no answer"},
}
SAMPLE = {
    "at_s": 1795255200.0,
    "gpus": [["0", "97", "70000", "81559", "650", "700", "60", "1980", "0x0"]],
    "error": "",
    "load": 3.5,
    "cpus": 192,
    "memory_kib": [2097152000, 1048576000],
    "received_bytes": 12345,
    "sent_bytes": 54321,
}
ROWS = [
    {"now": 1795255200.0},
    ["kernel", "s=1", 1795255200.0, True, "2026-11-21T10:00:00Z NVRM: Xid", "", False],
    ["/shared/*.log", "7:9", 1795255200.0, True, "step 1", "/shared/a.log", True],
    ["cloud-init", "{}", 1795255200.0, False, "Nov 21 10:00:00 node x: y"],
    {"source": "kernel", "trouble": "no journal", "missing": True, "over": True},
]
PROBED = """@@probe load
0.10 0.20 0.30 1/100 42
4
MemTotal: 1048576 kB
MemAvailable: 524288 kB

@@end 0

@@probe disk
/dev/root 101430960 20000000 81430960 20% /
@@end 0

@@probe efa
device efa_0 4: ACTIVE
rx_drops 0
@@end 0

@@probe clock
now 1000000000.5
System time     : 0.000001 seconds slow of NTP time
@@end 0

@@probe kernel
1795255200.1 node kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.
@@end 0

@@probe nvlink
GPU 0: NVIDIA H100
  Link 0: 26.562 GB/s
@@end 0

@@probe spot
{"notice": {"kind": "interruption", "time": "2026-11-21T10:00:00Z"}}
@@end 0

@@probe gpu
<gpu id="00000000:53:00.0"><product_name>NVIDIA H100</product_name>
<fb_memory_usage><total>81559 MiB</total> </fb_memory_usage></gpu>
@@end 0
"""
MACHINES = {
    "nodes": [{"name": "gpu1", "host_key": "ssh-ed25519 AAAA", "address": "10.0.0.1", "slot": 0}],
    "ssh": {"user": "me", "key_file": "~/.ssh/key", "proxy_command": ["nc", "{host}", "{port}"], "port": 22},
}
SPAN = {"slot": 0, "instance_id": "i-1", "started_at": AT, "ended_at": None, "price_usd_per_hour": 55.0}
STANDING = {"kind": "disks", "started_at": AT, "ended_at": AT, "price_usd_per_hour": 1.0}
SEEN = {"instance_id": "i-1", "slot": 0, "instance_type": "p5.48xlarge", "launched_at": AT, "at": AT, "alive": True}
RESERVED = {"reservation_id": "cr-1", "places": 4, "created_at": AT, "ends_at": None, "held": True, "ended_at": None}
RUN = {
    "verb": "up",
    "user": "ada",
    "host": "box",
    "boot": "b",
    "began_at": AT,
    "cli_pid": 77,
    "cli_ticks": 5,
    "tokens": ["t"],
    "stack": "stacks/train",
    "engines": [{"pid": 78, "ticks": 6, "at": AT, "host": "box", "boot": "b", "machine": "m", "pids": ""}],
}
IDENTITY = {
    "name": "train",
    "owner": "ada",
    "image_spec": "ubuntu",
    "image_candidate": "ami-0abc1234def567890",
    "zone_candidate": "us-west-2b",
    "run": 1,
}
MEMBERSHIP = {
    "cluster": "train",
    "cluster_id": "0123456789ab",
    "run": 1,
    "started_at": AT,
    "deadline": AT,
    "planned_at": AT,
    "node_price_usd_per_hour": 55.04,
    "disks_usd_per_hour": 0.0,
    "members": [{"slot": 0, "name": "train-0", "instance_id": "i-1", "public_ip": None}],
}
_URN = "urn:pulumi:dev::train::"
STATE = {
    "deployment": {
        "resources": [
            {"urn": _URN + "i", "type": IDENTITY_TYPE, "custom": True, "id": "0123456789ab", "outputs": {
                "cluster_id": "0123456789ab", "started_at": AT, "owner": "ada", "run": 1,
                "image_id": "ami-1", "zone": "z",
            }},
            {"urn": _URN + "m", "type": MEMBERSHIP_TYPE, "custom": True, "id": "0123456789ab", "outputs": {
                "generation": 3, "deadline": AT, "ledger": [SPAN, STANDING],
            }},
            {"urn": _URN + "n", "type": "aws:ec2/instance:Instance", "custom": True, "id": "i-1", "inputs": {
                "tags": {SLOT_TAG: "0"}}, "outputs": {"instanceType": "p5.48xlarge"}},
            {"urn": _URN + "r", "type": "aws:ec2/capacityReservation:CapacityReservation", "custom": True, "id": "cr-1",
             "inputs": {"instanceType": "p5.48xlarge", "instanceCount": 1}},
        ],
        "pending_operations": [{"type": "creating", "resource": {"urn": _URN + "n", "type": "t"}}],
    }
}  # fmt: skip
