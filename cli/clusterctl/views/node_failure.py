"""Why a node gave no result, the same in the JSON of every verb."""

from __future__ import annotations

from clusterctl.ssh.failures import NodeFailure


def node_failure_json(name: str, *, slot: int, rank: int, failure: NodeFailure | None) -> dict[str, object]:
    """The node, and `error_class`, `error_phase` and `message`, which are null when nothing failed."""
    return {
        "node": name,
        "slot": slot,
        "rank": rank,
        "error_class": None if failure is None else failure.kind,
        "error_phase": None if failure is None else failure.phase,
        "message": None if failure is None else failure.message,
    }
