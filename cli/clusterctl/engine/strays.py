"""Processes that a killed run left: its engine, the language host, plugins. Found, asked to end, then killed."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from clusterctl.engine.environment import RUN_VARIABLE
from clusterctl.system.processes import (
    Process,
    all_processes,
    command_line,
    has_variable,
    send,
    wait_until_gone,
    working_folder,
)

ENGINE_GRACE_S = 15.0
"""An engine told to stop lets its calls under way return."""
PLUGIN_GRACE_S = 3.0
"""Plugins look every half second whether the engine lives."""
_ENGINE = "pulumi"
_PROGRAM = "pulumi-language-python-exec"
_HOST = "pulumi-language-"
_PLUGINS = ("pulumi-resource-", "clusterctl_infra.provider", "clusterctl_rehearsal.plugin")


def end_run(token: str) -> int:
    """Ends the remaining processes of the run with this token, the engine gracefully; returns how many there were."""
    strays = run_processes(token)
    engines = [process for process in strays if is_engine(command_line(process.pid))]
    send(engines, signal.SIGINT)
    wait_until_gone(engines, timeout_s=ENGINE_GRACE_S)
    send(engines, signal.SIGKILL)
    _end(run_processes(token))
    return len(strays)


def end_orphans_of_folder(directory: Path) -> int:
    """Ends language hosts, programs and plugins of a plain `pulumi` run in this folder whose engine is gone."""
    words = {process: command_line(process.pid) for process in all_processes()}
    orphans = [process for process in orphaned_parts(words) if working_folder(process.pid) == directory]
    _end(orphans)
    return len(orphans)


def orphaned_parts(words: Mapping[Process, Sequence[str]]) -> list[Process]:
    """Parts of runs without a living engine above them; a program's parent is its language host."""
    by_pid = {process.pid: process for process in words}

    def has_engine(process: Process) -> bool:
        parent = by_pid.get(process.parent)
        if parent is None:
            return False
        return is_engine(words[parent]) or (is_part(words[parent]) and has_engine(parent))

    return [process for process, argv in words.items() if is_part(argv) and not has_engine(process)]


def end_program(token: str) -> None:
    """Ends the stack's program when its language host is gone: the engine would wait 5 s for it (engine 3.250)."""
    family = run_processes(token)
    pids = {process.pid for process in family}
    orphans = [process for process in family if process.parent not in pids and _is_program(process)]
    send(orphans, signal.SIGKILL)


def run_processes(token: str) -> list[Process]:
    """The engine and its parts that carry a run's token; the rehearsed region and its machines are not among them."""
    return [
        process
        for process in all_processes()
        if _is_ours(command_line(process.pid)) and has_variable(process.pid, RUN_VARIABLE, token)
    ]


def is_engine(words: Sequence[str]) -> bool:
    """Whether an argv is the engine, or what becomes it (setpriv, the wrapper's shell)."""
    return any(Path(word).name == _ENGINE for word in words[:5])


def is_part(words: Sequence[str]) -> bool:
    """Whether an argv is a language host, a stack's program or a plugin."""
    return any(mark in word for word in words[:4] for mark in (_HOST, *_PLUGINS))


def _is_ours(words: Sequence[str]) -> bool:
    return is_engine(words) or is_part(words)


def _is_program(process: Process) -> bool:
    return any(Path(word).name == _PROGRAM for word in command_line(process.pid)[:4])


def _end(strays: Sequence[Process]) -> None:
    hosts = [process for process in strays if any(_HOST in word for word in command_line(process.pid)[:4])]
    send(hosts, signal.SIGKILL)
    left = wait_until_gone(strays, timeout_s=PLUGIN_GRACE_S)
    send(left, signal.SIGKILL)
    wait_until_gone(left, timeout_s=1.0)
