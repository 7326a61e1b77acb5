"""Prints a job: its state, its output, its events, either from its nodes or from what is kept on this computer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl_infra.errors import NothingMatched
from clusterctl_infra.names import plain_name

from clusterctl.jobs.attached import has_ranks
from clusterctl.jobs.events import HEADER, JobEvent, event_json, event_row, merged_events
from clusterctl.jobs.following import OutputLine
from clusterctl.jobs.job_state import JobState, chosen_attempt
from clusterctl.jobs.kept_logs import KeptJob, kept_lines
from clusterctl.jobs.shown import line_json, line_text, state_json, state_text
from clusterctl.on_node.job.events import read_events
from clusterctl.output import Output
from clusterctl.text.node_set import ALL, fold_numbers, parse_node_set


def show_state(job: JobState, output: Output, *, as_json: bool) -> None:
    """Prints what `job show` says of it."""
    if as_json:
        output.json(state_json(job))
    else:
        output.data(state_text(job))


def show_line(line: OutputLine, job: JobState, output: Output, *, as_json: bool, has_names: bool) -> None:
    """Prints one line of `job logs`."""
    if as_json:
        output.json(line_json(line), is_line=True)
    else:
        cluster = str(job.spec["cluster"]) if has_names else None
        output.data(line_text(line, has_ranks=has_ranks(job.spec), cluster=cluster))


def show_events(events: Sequence[JobEvent], output: Output, *, as_json: bool) -> None:
    """Prints the table of `job events`."""
    if as_json:
        output.json([event_json(event) for event in events])
    else:
        output.table(HEADER, [event_row(event) for event in events])


@dataclass(frozen=True, kw_only=True)
class LinesWanted:
    """Which part of a job's output or events."""

    node: str | None
    """The text of `--node`; None: all nodes of the job."""
    rank: int | None
    attempt: int | None
    """None: the latest attempt."""
    has_names: bool = False
    """Lines begin with [train-0] instead of [Node 0]."""


def show_kept(kept: KeptJob, verb: str, output: Output, wanted: LinesWanted, *, as_json: bool) -> int:
    """Carries `job show`, `logs` or `events` out with what is kept here, and returns 0.

    Raises NothingMatched, also after showing the rest if a node's files were never kept, and UsageError.
    """
    job = kept.state
    cluster = plain_name(str(job.spec["cluster"]))
    hint = f"clusterctl job show {job.name}"
    slots = parse_node_set(wanted.node or ALL, cluster=cluster, slots=job.slots, look=hint)
    if verb == "show":
        show_state(job, output, as_json=as_json)
    elif verb == "events":
        by_slot = {slot: read_events(kept.node_folder(slot) / "events.jsonl") for slot in slots}
        show_events(merged_events(by_slot), output, as_json=as_json)
    else:
        for line in kept_lines(kept, slots=slots, attempt=chosen_attempt(job, wanted.attempt)):
            if wanted.rank in (None, rank_of(line)):
                show_line(line, job, output, as_json=as_json, has_names=wanted.has_names)
    missing = [slot for slot in slots if not kept.node_folder(slot).is_dir()]
    short = {*slots} & {*kept.short_slots} - {*missing}
    if short:
        where = f"{'Node' if len(short) == 1 else 'Nodes'} {fold_numbers(short)}"
        output.note(f"{job.name}: {where}: not all of the files are kept here")
    if missing:
        raise NothingMatched(f"{job.name}: Node {missing[0]} was gone before its output was copied here", hint=hint)
    return 0


def rank_of(line: OutputLine) -> int | None:
    """The rank that wrote the line; None: the launcher."""
    return int(line.rank) if line.rank.isdigit() else None
