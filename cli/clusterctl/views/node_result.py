"""One node's result as a line of NDJSON."""

from __future__ import annotations

import base64

from clusterctl.ssh.results import NodeResult


def node_result_json(
    result: NodeResult, *, rank: int, stdout: bytes, stderr: bytes, is_truncated: bool
) -> dict[str, object]:
    """`exit_code` is null when the command has none, and `error_class` says why; output that is not UTF-8 comes in
    base64 as well."""
    failure = result.failure
    return {
        "node": result.name,
        "slot": result.slot,
        "rank": rank,
        "exit_code": result.exit_code,
        "signal": result.signal,
        "error_class": None if failure is None else failure.kind,
        "error_phase": None if failure is None else failure.phase,
        "error": None if failure is None else failure.message,
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
