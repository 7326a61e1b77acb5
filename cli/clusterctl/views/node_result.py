"""One node's result as a line of NDJSON."""

from __future__ import annotations

import base64

from clusterctl.ssh.results import NodeResult
from clusterctl.views.node_failure import node_failure_json


def node_result_json(
    result: NodeResult, *, rank: int, stdout: bytes, stderr: bytes, is_truncated: bool
) -> dict[str, object]:
    """`exit_code` is null when the command has none, and `error_class` says why; output that is not UTF-8 comes in
    base64 as well."""
    return {
        **node_failure_json(result.name, slot=result.slot, rank=rank, failure=result.failure),
        "exit_code": result.exit_code,
        "signal": result.signal,
        "seconds": round(result.duration_s, 3),
        **_text("stdout", stdout),
        **_text("stderr", stderr),
        "truncated": is_truncated,
    }


def _text(name: str, data: bytes) -> dict[str, str]:
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {name: data.decode(errors="replace"), f"{name}_base64": base64.b64encode(data).decode()}
