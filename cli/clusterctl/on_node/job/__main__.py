"""What jobs need of a node, one verb each: prints JSON lines and ends with 0, or `{"error": …}` and 1."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any, Callable, List

from clusterctl.on_node.job.layout import Layout

ANSWERS = {
    "facts": ("facts", "node_facts"),
    "take": ("take", "answer_take"),
    "pull": ("image_pull", "answer_pull"),
    "prepare": ("prepare", "answer_prepare"),
    "lock": ("ready", "answer_lock"),
    "ready": ("ready", "answer_ready"),
    "start": ("keeper_service", "answer_start"),
    "discard": ("prepare", "answer_discard"),
    "cancel": ("present_state", "answer_cancel"),
    "list": ("present_state", "answer_list"),
    "events": ("events", "answer_events"),
    "follow": ("follow", "answer_follow"),
}
"""Verbs whose function gives what is printed, or prints it itself and gives nothing."""
SILENT = {
    "keep": ("keep", "keep"),
    "clear-up": ("keep", "clear_up"),
    "end-containers": ("keep", "end_containers"),
    "supervise": ("supervise", "supervise"),
    "share-logs": ("shared_logs", "share_logs"),
}
"""Verbs of a job that say nothing."""
OWN_CODE = {
    "rank": ("rank", "answer_rank"),
    "become": ("this_process", "become"),
    "inside": ("job_containers", "answer_inside"),
    "attend": ("job_containers", "answer_attend"),
    "join": ("inside", "answer_join"),
    "exec": ("inside", "answer_exec"),
    "mpi-agent": ("mpi_agent", "answer_mpi"),
    "pack": ("pack", "answer_pack"),
    "serve-names": ("name_server", "answer_serve_names"),
}
"""Verbs that have an exit code of their own, and whose stdout is a program's or an archive."""
STARTING = ("prepare", "lock", "ready", "start", "keep", "supervise")
"""Verbs that start this program again: the last argument of their functions is its path."""


def main(verb: str, arguments: List[str]) -> int:
    """The exit code."""
    run = function_of(verb)
    if verb in OWN_CODE:
        return int(run(arguments))
    words: List[Any] = [*arguments, Path(sys.argv[0]).resolve()] if verb in STARTING else arguments
    if verb in SILENT:
        run(Layout(), *words)
        return 0
    try:
        answer = run(Layout(), *words)
    except (OSError, ValueError, LookupError) as e:
        # Our messages are sentences; Python's need the exception's name beside them.
        answer = {"error": str(e) if type(e) is ValueError else "%s: %s" % (type(e).__name__, e)}
        print(json.dumps(answer), flush=True)
        return 1
    if answer is not None:
        print(json.dumps(answer), flush=True)
    return 0


def function_of(verb: str) -> Callable[..., Any]:
    """The verb's function. Only the modules that this verb needs are loaded."""
    module, name = {**ANSWERS, **SILENT, **OWN_CODE}[verb]
    found: Callable[..., Any] = getattr(importlib.import_module("clusterctl.on_node.job." + module), name)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
