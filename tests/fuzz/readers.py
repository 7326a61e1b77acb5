"""Every reader of what somebody else wrote, with a sound input; an error that is not one of ours is an escape."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any  # JSON values

from clusterctl.cloud.instances import instance_state
from clusterctl.cost.sighting_file import read_reserved, read_seen
from clusterctl.engine.run_file import read_record
from clusterctl.engine.state import deadline_in, generation_in, identity_in, ledger_in, parse_state
from clusterctl.hosts.host_check import hindrances, parse_look
from clusterctl.jobs.events import event_json, event_row, merged_events
from clusterctl.jobs.following import JobFollowing, OutputLine
from clusterctl.jobs.job_state import job_states, merged
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.node_answers import answer_of as job_answer_of
from clusterctl.jobs.shown import line_json, line_text, state_json, state_text, table_row
from clusterctl.logs.show import log_head, log_json
from clusterctl.logs.stream import LogLine, NodeStream
from clusterctl.probes.ask import read_script
from clusterctl.probes.bandwidth import bandwidth_json, bandwidth_lines, judged_links, measured_links
from clusterctl.probes.finding import sentences_of
from clusterctl.probes.network import network_findings, parse_network
from clusterctl.probes.perftest import Link, Pair, parse_bandwidth, parse_pair
from clusterctl.probes.probe import ProbeUnreadable
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
from clusterctl.status.ledger import read_ledger
from clusterctl.status.node_answers import answer_of
from clusterctl.status.node_report import NodeReport
from clusterctl.status.overview import overview
from clusterctl.status.view import status_json
from clusterctl.top.board import Board
from clusterctl.top.feed import SampleLines
from clusterctl.top.frame import gpu_lines, layout_for, node_line, text_of
from clusterctl.workflows.jobs_of_tasks import table_row as workflow_row
from clusterctl.workflows.jobs_of_tasks import workflow_json, workflow_text, workflows_of
from clusterctl_infra.config.hosts import HostsConfig
from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.names import SLOT_TAG
from clusterctl_infra.outputs import Inventory, inventory_from_json, inventory_to_json, read_inventory
from clusterctl_infra.provider.identity_resource import IdentityResource
from clusterctl_infra.provider.local_home import LocalHome
from clusterctl_infra.provider.membership_resource import MembershipResource
from clusterctl_infra.strict_json import NotAsExpected

from tests.fuzz.job_samples import JOB_ROWS, JOBS, TAKEN, WORKFLOW_JOBS
from tests.fuzz.mutation import mutated, with_evil_words
from tests.fuzz.samples import (
    AT,
    BANDWIDTH,
    IB_WRITE_BW,
    IDENTITY,
    LOOKED,
    MACHINES,
    MEMBERSHIP,
    NETWORK,
    PROBED,
    REPORT,
    RESERVED,
    ROWS,
    RUN,
    SAMPLE,
    SEEN,
    SPAN,
    STANDING,
    STATE,
)

EXPECTED = (ClusterctlError, NodeFailure, NotAsExpected, ProbeUnreadable)
LOOKED_AT_S = 1795255200.0
HOSTS = {"target": "hosts", "name": "lab", "hosts": ["10.0.8.10"], "ssh": {"user": "ada"}, "gpus": "h100:8"}
NOW = datetime(2026, 11, 21, 11, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Reader:
    """What reads, and a sound input for it: text, or a JSON value."""

    read: Callable[[bytes], object]
    """Gives back something true of an input that it took, all of it; raises one of EXPECTED, or gives back nothing."""
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
        "look at a host": Reader(_look, LOOKED),
        "answer to a check of the network": Reader(_network, NETWORK),
        "answer of a bandwidth measurement": Reader(lambda data: _bandwidth(data, inventory), BANDWIDTH),
        "figures of ib_write_bw": Reader(lambda data: parse_bandwidth(data.decode(errors="replace")), IB_WRITE_BW),
        "answers about jobs": Reader(_job_answers, JOBS),
        "answer to a job that takes a node": Reader(_taken, TAKEN),
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
        "observed": Reader(_of_file(folder, lambda path: read_seen(path) and read_reserved(path)), SEEN | RESERVED),
        "run": Reader(_of_file(folder, read_record), RUN),
        "identity": Reader(lambda data: _checked(data, folder), IDENTITY),
        "membership": Reader(lambda data: _checked(data, folder), MEMBERSHIP),
    }


def _write_json(value: object) -> None:
    """As `--json` does. Raises ValueError for what is no number of JSON."""
    json.dumps(value, allow_nan=False)


def _printed(data: bytes) -> NodeResult:
    """What a node's command printed, which ended well."""
    return NodeResult(
        slot=0, name="train-0", exit_code=0, signal=None, failure=None, stdout=data, stderr=b"", duration_s=1.0
    )


def _status(data: bytes, inventory: Inventory) -> bool:
    answer = answer_of(_printed(data))
    _write_json(status_json(overview(inventory, Facts(now=NOW, instances=None, answers={0: answer}))))
    return isinstance(answer, NodeReport)


def _sweep(data: bytes, inventory: Inventory) -> bool:
    readings = readings_of(read_script(data.decode(errors="replace"), tuple(PROBES.values())))
    answer = NodeAnswer(node=inventory.nodes[0], readings=readings, failure=None, asked_at_s=1e9, answered_at_s=1e9 + 1)
    report = judged(inventory, (answer, answer))
    _write_json(sweep_json(report))
    sweep_text(report, probes=list(PROBES), is_chosen=True)
    summary(report)
    return not readings.troubles


def _look(data: bytes) -> bool:
    config = HostsConfig.model_validate(HOSTS)
    look = parse_look(data.decode(errors="replace"))
    return not hindrances(look, config, 0, cluster_id="0123456789ab", began_s=LOOKED_AT_S, ended_s=LOOKED_AT_S + 1)


def _network(data: bytes) -> bool:
    reading = parse_network(data.decode(errors="replace"))
    found = network_findings(reading, {0: "train-0", 1: "train-1"}, unheard=())
    sentences_of(found)
    return len(found) == 4


def _bandwidth(data: bytes, inventory: Inventory) -> bool:
    answer = parse_pair(data.decode(errors="replace"))
    links = tuple(Link(sender=name, receiver=name, rate_gbps=400.0) for name in ("mlx5_0:1", "mlx5_1:1"))
    measured = judged_links(measured_links(Pair(sender=0, receiver=0), links, (answer, answer)))
    bandwidth_lines(inventory, measured, {}, rounds=1)
    _write_json(bandwidth_json(inventory, measured, {}))
    return [link.verdict for link in measured] == ["ok", "failed: Couldn't connect"]


def _top(data: bytes, inventory: Inventory) -> bool:
    board = Board(inventory.nodes)
    lines = SampleLines(board, 0)
    lines.feed(json.dumps(SAMPLE).encode() + b"\n")
    lines.feed(data + b"\n")
    state = board.states()[0]
    text_of(node_line(state, 8, layout_for(8), 1e9))
    for line in gpu_lines(state, state.heard_at_s or 0.0):
        text_of(line)
    return state.failure is None


def _job_answers(data: bytes) -> bool:
    node, result = _inventory().nodes[0], _printed(data)
    plain = [job_answer_of(verb, node, result) for verb in ("facts", "pull", "lock", "ready", "cancel")]
    answer = job_answer_of("events", node, result)
    events = merged_events({0: answer.words.get("events", ()) if answer.error is None else ()})
    for event in events:
        event_row(event)
        _write_json(event_json(event))
    answer = job_answer_of("list", node, result)
    jobs = job_states({0: answer.words}) if answer.error is None and "jobs" in answer.words else []
    for job in jobs:
        table_row(job)
        state_text(job)
        _write_json(state_json(job))
    return all(each.error is None for each in plain) and bool(events) and bool(jobs)


def _taken(data: bytes) -> bool:
    """What a node says that takes a job's lease."""
    return job_answer_of("take", _inventory().nodes[0], _printed(data)).error is None


def _workflows(data: bytes) -> Sequence[object]:
    answer = job_answer_of("list", _inventory().nodes[0], _printed(data))
    workflows = workflows_of(job_states({0: answer.words})) if answer.error is None and "jobs" in answer.words else []
    for workflow in workflows:
        workflow_row(workflow)
        workflow_text(workflow)
        _write_json(workflow_json(workflow))
    return workflows


def _job_rows(data: bytes) -> bool:
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
    has_lines = False
    while not following._arrived.empty():
        item = following._arrived.get()
        if isinstance(item, OutputLine):
            has_lines = True
            line_text(item, has_ranks=True)
            _write_json(line_json(item))
    job = merged(JOBS["jobs"][0]["spec"], following.last_states)
    _write_json(state_json(job))
    return has_lines and bool(following.last_states)


def _logs(data: bytes, inventory: Inventory) -> bool:
    lines: list[LogLine] = []
    troubles: list[str] = []
    stream = NodeStream(inventory.nodes[0], on_line=lines.append, on_trouble=troubles.append)
    try:
        rows = json.loads(data)
    except (ValueError, RecursionError):
        rows = None
    parts = [json.dumps(row).encode() for row in rows] if isinstance(rows, list) else [data]
    stream.feed(b"\n".join(parts) + b"\n")
    for line in lines:
        log_head(line, has_sources=True)
        _write_json(log_json(line))
    return len(lines) == 3 and not any("cannot be read" in trouble for trouble in troubles)


def _instance(data: bytes) -> bool:
    """Tags are people's, the rest is typed by AWS's SDK."""
    try:
        row = json.loads(data)
        texts = {key: str(row.get(key)) for key in ("slot", "reason")}
    except (ValueError, RecursionError, AttributeError):
        texts = {"slot": data.decode(errors="replace"), "reason": data.decode(errors="replace")}
    found = instance_state(
        {
            "InstanceId": "i-1",
            "State": {"Name": "terminated"},
            "Tags": [{"Key": SLOT_TAG, "Value": texts["slot"]}],
            "StateTransitionReason": texts["reason"],
        }
    )
    return found.slot is not None and found.ended_at is not None


def _state(data: bytes) -> bool:
    state = parse_state(data.decode(errors="replace"))
    ledger, identity = ledger_in(state), identity_in(state, region="us-west-2")
    return all((generation_in(state), deadline_in(state), state.instances, state.pending, ledger, identity))


def _of_file(folder: Path, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    path = folder / "input.json"

    def written(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return written


def _checked(data: bytes, folder: Path) -> bool:
    """As the engine hands inputs over: always an object."""
    try:
        row = json.loads(data)
    except (ValueError, RecursionError):
        return False
    if not isinstance(row, dict):
        return False
    home = LocalHome(root=folder)
    if "image_spec" in row:
        return not IdentityResource(home=home, environ={}, now=lambda: NOW).check(row)
    return not MembershipResource(home=home, now=lambda: NOW).check(row)


def _inventory() -> Inventory:
    node = {"slot": 0, "rank": 0, "name": "train-0", "private_ip": "10.0.8.10", "host_public_key": "ssh-ed25519 AAAA"}
    ssh = {"user": "ubuntu", "key_file": None, "proxy_command": ["nc", "{host}", "{port}"], "public_keys": ["k"]}
    texts = ("name", "cluster", "cluster_id", "region", "zone", "owner", "image_id", "instance_type", "deadline_reason")
    counts = {"version": 1, "run": 1, "gpus_per_node": 8, "generation": 3, "usd_per_hour": 55.0, "budget_usd": None}
    times = {"started_at": AT, "deadline": "2026-11-22T10:00:00+00:00"}
    row = {**dict.fromkeys(texts, "train"), **counts, **times, "rehearsal": False, "ssh": ssh, "nodes": [node]}
    return inventory_from_json(row, source="fuzz")
