"""What the engine did to a reservation, written down when it is done: AWS tells later that it ended, and not when."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from clusterctl.cost.sighting_file import note_cancelled, note_resized
from clusterctl.engine.events import Event, Step
from clusterctl.engine.state import RESERVATION_TYPE


def note_step(path: Path, event: Event, *, at: datetime) -> None:
    """Writes into `path` that a reservation was cancelled or made larger or smaller; of all else nothing."""
    if not isinstance(event, Step) or event.type != RESERVATION_TYPE or event.stage != "done":
        return
    if event.op.startswith("delete"):
        note_cancelled(path, event.id, at=at)
    elif event.op == "update" and "instanceCount" in event.inputs:
        note_resized(path, event.id, int(event.inputs["instanceCount"]), at=at)
