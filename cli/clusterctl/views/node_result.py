"""One node's result as a line of NDJSON."""

from __future__ import annotations

import base64

from clusterctl.ssh.results import NodeResult


def node_result_json(result: NodeResult) -> dict[str, object]:
    """`exit_code` is null when the command has none; output that is not UTF-8 comes in base64 as well."""
    failure = result.failure
    return {
        "node": result.name,
        "slot": result.slot,
        "exit_code": result.exit_code,
        "signal": result.signal,
        "failure": None
        if failure is None
        else {"kind": failure.kind, "phase": failure.phase, "message": failure.message},
        "duration_s": round(result.duration_s, 3),
        **_text("stdout", result.stdout),
        **_text("stderr", result.stderr),
    }


def _text(name: str, data: bytes) -> dict[str, str]:
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {name: data.decode(errors="replace"), f"{name}_base64": base64.b64encode(data).decode()}
