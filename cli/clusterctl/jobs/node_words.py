"""Checks what nodes say of jobs: each field has its type and is within bounds. A malformed one is the node's failure.

Pure. A field that nobody here reads is not checked, so an older or a newer program on a node may say more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any  # JSON

from clusterctl_infra.strict_json import Fields, NotAsExpected, parsed, shortened

from clusterctl.jobs import variables
from clusterctl.on_node.job import judge

MOST_ANSWER_BYTES = 64 * 1024 * 1024
"""The longest answer is that of `list`: a node keeps some twenty jobs, each with an environment for all its nodes."""
MOST_ROW_BYTES = 1024 * 1024
"""The longest line that `follow` prints: 64 KiB of output, with each byte written as an escape."""
MOST_WORD = variables.MOST_BYTES
"""Characters of one word of a command, or one variable."""
MOST_WORDS = 10_000
MOST_LOCK = 1024 * 1024
"""Characters of a lock, which has the name, version and hashes of each package."""
MOST_EVENTS = 100_000
"""More than there is room for in a node's file."""
CLUSTER_ID = re.compile(r"[0-9a-f]{12}")
"""Checked because it becomes a part of a folder's name where a job is kept."""
MOST_SLOT, MOST_PROCESSES, MOST_GPUS, MOST_PORT = 100_000, 4096, 1024, 65_535
LATEST_S = 4102444800.0
"""2100-01-01: a later time is an error."""


def checked_answer(verb: str, words: object) -> Mapping[str, Any]:
    """The node's answer to a verb. Raises NotAsExpected."""
    row = Fields.of(words)
    if row.has("error"):
        row.text("error", most=MOST_WORD)
    elif verb == "facts":
        _check_facts(row)
    elif verb == "take":
        _refuse_missing(row, "gpus")
        _check_indices(row, "gpus")
        _check_holders(row)
    elif verb == "pull":
        row.text("image_id")
    elif verb == "lock":
        row.text("lock", most=MOST_LOCK)
    elif verb == "ready":
        row.text("interpreter")
        row.text("version")
    elif verb == "events":
        _refuse_missing(row, "events", may_be_null=False)
        for event in row.objects("events", most=MOST_EVENTS):
            event.text("event")
            event.number("at_s", low=0, high=LATEST_S)
    elif verb == "cancel":
        checked_state(row.fields("state").row)
    elif verb == "list":
        _refuse_missing(row, "jobs", may_be_null=False)
        for job in row.objects("jobs"):
            _check_spec(job.fields("spec"))
            checked_state(job.fields("state").row)
    return row.row


def checked_state(words: object) -> Mapping[str, Any]:
    """A job's state on one node, checked. Raises NotAsExpected."""
    row = Fields.of(words, "state.")
    if row.text("state") not in judge.STATES:
        raise NotAsExpected(f"{row.row['state']!r} is no state of a job")
    row.number("since_s", low=0, high=LATEST_S)
    outcome = row.fields_or_none("outcome")
    if outcome is not None:
        _check_outcome(outcome)
    elif row.row["state"] in judge.FINAL:
        raise NotAsExpected("a job that has ended without an outcome")
    return row.row


def checked_row(text: bytes) -> object:
    """One line that `follow` printed, as JSON. Raises NotAsExpected."""
    return parsed(text, most_bytes=MOST_ROW_BYTES)


def checked_time(text: str) -> float:
    """When a line was written, as Unix time. Raises ValueError."""
    at_s = float(text)
    if not 0 <= at_s <= LATEST_S:
        raise ValueError(f"{text} is no time")
    return at_s


def checked_rank(text: str) -> str:
    """The rank that wrote a line: a number, or `-` for the launcher. Raises ValueError."""
    if text != "-" and not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST_SLOT * MOST_PROCESSES))):
        raise ValueError("no rank")
    return text


def _check_facts(row: Fields) -> None:
    row.whole("slot", high=MOST_SLOT)
    row.text("cluster_id")
    row.whole("generation")
    row.whole("gpus", high=MOST_GPUS)
    row.text("phase")
    row.text("engine")
    row.text_or_none("shared")
    row.text_or_none("missing_program")
    if row.has("mounts"):
        for mount in row.objects("mounts"):
            for name in ("path", "kind", "source"):
                mount.text(name)
            mount.flag("writable")
    _refuse_missing(row, "is_name_taken", may_be_null=False)
    row.flag("is_name_taken")
    _check_numbers(row, "ports_in_use", MOST_PORT)
    _check_holders(row)


def _check_holders(row: Fields) -> None:
    _refuse_missing(row, "holders", may_be_null=False)
    for holder in row.objects("holders"):
        holder.text("job")
        _check_indices(holder, "gpus")


def _check_spec(row: Fields) -> None:
    for name in ("job", "cluster", "launcher", "by"):
        row.text(name)
    if CLUSTER_ID.fullmatch(row.text("cluster_id")) is None:
        raise NotAsExpected(f"{row.place}cluster_id is {shortened(row.row['cluster_id'])}: no id of a cluster")
    row.whole("attempt", low=1)
    row.number("grace_s", low=0)
    _refuse_missing(row, "timeout_s")
    if row.has("timeout_s"):
        row.number("timeout_s", low=0)
    _check_texts(row, "command")
    _check_texts(row, "secrets")
    if row.has("launcher_options"):
        _check_texts(row, "launcher_options")
    row.text_or_none("shared")
    environment = row.fields("environment")
    for name in environment.row:
        environment.text(name, most=MOST_WORD)
    row.fields("snapshot")
    if row.has("image"):
        row.text("image")
        row.text("image_id")
    members = list(row.objects("members"))
    if not members:
        raise NotAsExpected("members is empty")
    for member in members:
        member.whole("slot", high=MOST_SLOT)
        member.text("name")
        member.whole("nproc", low=1, high=MOST_PROCESSES)
        _check_indices(member, "gpu_indices")


def _check_outcome(row: Fields) -> None:
    if row.text("state") not in judge.FINAL:
        raise NotAsExpected(f"{row.row['state']!r} is no end of a job")
    row.whole("exit_code", high=255)
    if row.has("cause"):
        row.text("cause", most=MOST_WORD)
    failure = row.fields_or_none("failure")
    if failure is not None:
        failure.whole("slot", high=MOST_SLOT)
        for name in ("rank", "local_rank"):
            if failure.has(name):
                failure.whole(name)
        _check_texts(failure, "lines")
        failure.text_or_none("error", most=MOST_WORD)


def _refuse_missing(row: Fields, name: str, *, may_be_null: bool = True) -> None:
    if name not in row.row or (row.row[name] is None and not may_be_null):
        raise NotAsExpected(f"{row.place}{name} is missing")


def _check_indices(row: Fields, name: str) -> None:
    """Checks a list of GPU indices; null stands for all that the node has."""
    if row.has(name):
        _check_numbers(row, name, MOST_GPUS)


def _check_numbers(row: Fields, name: str, most: int) -> None:
    numbers = _numbered(row, name)
    for place in numbers.row:
        numbers.whole(place, high=most)


def _check_texts(row: Fields, name: str) -> None:
    texts = _numbered(row, name)
    for place in texts.row:
        if texts.row[place] != "":
            texts.text(place, most=MOST_WORD)


def _numbered(row: Fields, name: str) -> Fields:
    """The list in the field `name`, as fields that are called by their index."""
    values = row.row.get(name)
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) > MOST_WORDS:
        raise NotAsExpected(f"{row.place}{name} is no list of at most {MOST_WORDS}")
    return Fields({str(place): value for place, value in enumerate(values)}, f"{row.place}{name}.")
