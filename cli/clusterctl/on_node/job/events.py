"""What happened to a job on one node, a line of JSON for each, so that it can be shown afterwards."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Dict

from clusterctl.on_node.job.layout import Layout

MOST_BYTES = 1024 * 1024
"""The most that one node's file may have: some thousand events. Later ones are not kept."""


def answer_events(layout: Layout, job: str) -> Dict[str, Any]:
    """The verb `events`: what happened to the job on this node."""
    return {"events": read_events(layout.events(job))}


def note_event(layout: Layout, job: str, event: str, **words: Any) -> None:
    """Writes the event down; on a full disk it is lost, and the job goes on."""
    path = layout.events(job)
    try:
        if path.exists() and path.stat().st_size > MOST_BYTES:
            return
        with path.open("a") as stream:
            stream.write(json.dumps({"at_s": round(time.time(), 3), "event": event, **words}) + "\n")
    except OSError:
        return


def read_events(path: Path) -> list[dict[str, Any]]:
    """All events in their order; a line that is no event, such as one that was torn, is left out."""
    found = []
    try:
        lines = path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    for line in lines:
        try:
            words = json.loads(line)
            found.append({**words, "at_s": float(words["at_s"]), "event": str(words["event"])})
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
            continue
    return found
