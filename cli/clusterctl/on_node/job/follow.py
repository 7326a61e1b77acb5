"""Prints a job's output on this node and how it goes there, as JSON lines, until both have ended."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from clusterctl.on_node.job import judge
from clusterctl.on_node.job.layout import Layout
from clusterctl.on_node.job.output_log import read_from
from clusterctl.on_node.job.present_state import present_state

POLL_S = 0.1
BEAT_S = 1.0
MOST_AT_ONCE = 2000


def answer_follow(layout: Layout, job: str, attempt: str, segment: str, offset: str, is_followed: str) -> None:
    """The verb `follow`, from this place on; `is_followed`: yes, or no for what is there by now."""
    follow(layout, job, int(attempt), (int(segment), int(offset)), is_followed=is_followed == "yes")


def follow(layout: Layout, job: str, attempt: int, place: tuple[int, int], *, is_followed: bool) -> None:
    """`[segment, offset, line]` for each line, `{"state": …}` when it changes, `{"over": …}` at the end."""
    shown: dict[str, Any] = {}
    shown_s = time.monotonic()
    while True:
        state = present_state(layout, job)  # before the lines: what was written until then is among them
        is_over = state["state"] in judge.FINAL or not is_followed
        lines = []
        for after, line in read_from(layout.attempt(job, attempt), place):
            place = after
            lines.append(json.dumps([*place, line]))
            if len(lines) == MOST_AT_ONCE:
                _print(lines)
                lines = []
        if state != shown or (lines and is_over):
            lines.append(json.dumps({"state": state}))
            shown = state
        if is_over:
            _print([*lines, json.dumps({"over": state})])
            return
        if lines or time.monotonic() - shown_s > BEAT_S:
            _print(lines or ["{}"])
            shown_s = time.monotonic()
        time.sleep(POLL_S)


def _print(lines: list[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
