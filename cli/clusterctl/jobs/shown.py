"""Jobs as text for people and as JSON for programs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any  # JSON

from clusterctl_infra.names import plain_name

from clusterctl.jobs.following import OutputLine
from clusterctl.jobs.job_state import JobState
from clusterctl.on_node.job import judge
from clusterctl.text.node_set import fold_numbers
from clusterctl.text.quantities import count

HEADER = ("job", "state", "since", "nodes", "ranks", "command")
LAST_LINES = 10
COMMAND_WIDTH = 48


def line_text(line: OutputLine, *, has_ranks: bool, cluster: str | None = None) -> str:
    """`[Node 0] [10:30:15] …`, with the rank if `has_ranks`; `[train-0] …` if `cluster` is given."""
    at = datetime.fromtimestamp(line.at_s, UTC)
    rank = f" [rank {line.rank}]" if has_ranks and line.rank != "-" else ""
    return f"[{node_called(line.slot, cluster)}] [{at:%H:%M:%S}]{rank} {line.text}"


def node_called(slot: int, cluster: str | None) -> str:
    """`Node 0`, or `train-0` if `cluster` is `train`, `train@rehearsal` or `train@hosts`."""
    return f"Node {slot}" if cluster is None else f"{plain_name(cluster)}-{slot}"


def line_json(line: OutputLine) -> dict[str, object]:
    """The line as one line of NDJSON."""
    at = datetime.fromtimestamp(line.at_s, UTC).isoformat()
    return {"slot": line.slot, "rank": None if line.rank == "-" else int(line.rank), "time": at, "line": line.text}


def table_row(job: JobState) -> Sequence[str]:
    """The job's row in the table whose columns are `HEADER`."""
    since = datetime.fromtimestamp(job.since_s, UTC)
    command = " ".join(job.spec["command"])
    short = command if len(command) <= COMMAND_WIDTH else command[: COMMAND_WIDTH - 1] + "…"
    ranks = str(sum(int(member["nproc"]) for member in job.spec["members"]))
    return (job.name, job.state, f"{since:%Y-%m-%d %H:%M:%S} UTC", fold_numbers(job.slots), ranks, repr(short)[1:-1])


def state_json(job: JobState) -> dict[str, object]:
    """All that is known of the job, as JSON. Of its secrets only the names are known."""
    outcome = job.outcome or {}
    return {
        "job": job.name,
        "attempt": job.spec["attempt"],
        "state": job.state,
        "since": datetime.fromtimestamp(job.since_s, UTC).isoformat(),
        "exit_code": job.exit_code,
        "cause": outcome.get("cause") or None,
        "failure": outcome.get("failure"),
        "nodes": [
            {**member, "state": job.by_slot.get(int(member["slot"]), {}).get("state")} for member in job.spec["members"]
        ],
        "image": job.spec.get("image"),
        "image_id": job.spec.get("image_id"),
        **{
            name: job.spec[name]
            for name in ("launcher", "command", "environment", "secrets", "timeout_s", "grace_s", "by", "snapshot")
        },
    }


def ended_text(job: JobState) -> str:
    """`train: failed: Node 1 (train-1): rank 3 (local rank 1) exited with code 7`, and that rank's last lines."""
    outcome = job.outcome or {}
    cause = "" if outcome.get("cause") in (None, "", judge.PLAIN_CANCEL) else f": {outcome['cause']}"
    lines = [f"{job.name}: {job.state}{cause}"]
    failure = outcome.get("failure")
    if failure:
        last = ([failure["error"]] if failure.get("error") else []) + list(failure.get("lines", ()))[-LAST_LINES:]
        lines += [f"  | {line}" for line in last]
        lines.append(f"  next: clusterctl job logs {job.name} --node {failure['slot']}")
    return "\n".join(lines)


def state_text(job: JobState) -> str:
    """What `job show` prints."""
    members = [
        f"  Node {member['slot']} ({member['name']})  "
        f"{job.by_slot.get(int(member['slot']), {}).get('state', 'no answer')}  {count(int(member['nproc']), 'rank')}"
        f"{_gpus(member)}"
        for member in job.spec["members"]
    ]
    rows = [
        ended_text(job),
        f"  attempt   {job.spec['attempt']}",
        f"  launcher  {job.spec['launcher']}",
        f"  command   {job.spec['command']!r}",
        *([f"  image     {job.spec['image']} ({job.spec['image_id'][:19]})"] if job.spec.get("image") else []),
        f"  started   by {job.spec['by']}",
    ]
    return "\n".join([*rows, *members])


def _gpus(member: Mapping[str, Any]) -> str:
    """The GPUs that the job has on this node; empty if it has the whole node."""
    indices = member.get("gpu_indices")
    return "" if not indices else f"  GPUs {fold_numbers(indices)}"
