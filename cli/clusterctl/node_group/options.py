"""The options of a group's `run` and `sudo`, which are Invoke's; those that a group cannot obey are refused. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Literal, TextIO  # Any: what a program passed

import fabric
from clusterctl_infra.errors import UsageError
from invoke.runners import normalize_hide

Verb = Literal["run", "sudo"]

ALONE = "a connection alone has it, nodes(…)[0].{verb}(…)"
_REFUSED: Mapping[str, tuple[tuple[object, ...], str]] = {
    "asynchronous": ((None, False), f"a group waits for all its nodes; {ALONE}"),
    "disown": ((None, False), f"what a group starts ends with it; {ALONE}"),
    "dry": ((None, False), ALONE),
    "echo_stdin": ((None, False), ALONE),
    "fallback": ((None, True), "there is no terminal to fall back from"),
    "password": ((None, ""), "sudo on the nodes asks for no password"),
    "pty": ((None, False), f"several nodes cannot share a terminal; {ALONE}"),
    "replace_env": ((None, True), "a node's command never gets the variables of this program"),
    "shell": ((None,), "the login user's shell on the node runs the command"),
    "user": ((None, "root"), "a group's sudo is for root"),
    "watchers": ((None, (), []), f"nobody answers prompts on several nodes; {ALONE}"),
}
"""Option → (the values that a group can accept, why it refuses all others)."""
_SUDO_ONLY = {"user", "password"}


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a group runs a command and shows what the nodes say."""

    warn: bool
    hidden: tuple[str, ...]
    """Which of `stdout` and `stderr` are not shown; the results have all output either way."""
    echo_line: str | None
    """A line that is printed before anything runs; None: none is."""
    encoding: str
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float | None = None
    in_stream: IO[Any] | None = None
    out_stream: TextIO | None = None
    err_stream: TextIO | None = None
    """For `out_stream` and `err_stream`, None stands for `sys.stdout` and `sys.stderr` as they are when it runs."""


def run_options(command: str, given: Mapping[str, Any], *, verb: Verb) -> RunOptions:
    """The options that a program passed, with Invoke's defaults for the others.

    Raises UsageError for what a group cannot do, TypeError for an unknown option, and ValueError as Invoke does.
    """
    usual: Mapping[str, Any] = fabric.Config.global_defaults()["run"]
    known = {*usual, "timeout"} | (_SUDO_ONLY if verb == "sudo" else set())
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"{verb}() got an unexpected keyword argument {name!r}")
        _refuse_what_a_group_lacks(name, value, verb)
    chosen = {**usual, **{name: value for name, value in given.items() if value is not None}}
    hidden = normalize_hide(chosen["hide"], chosen["out_stream"], chosen["err_stream"])
    is_echoed = chosen["echo"] and chosen["hide"] is not True
    return RunOptions(
        warn=bool(chosen["warn"]),
        hidden=hidden,
        echo_line=chosen["echo_format"].format(command=command) if is_echoed else None,
        encoding=chosen["encoding"] or "utf-8",
        environment=_environment(chosen["env"]),
        timeout_s=_timeout(chosen.get("timeout")),
        in_stream=chosen["in_stream"] or None,
        out_stream=chosen["out_stream"],
        err_stream=chosen["err_stream"],
    )


def _refuse_what_a_group_lacks(name: str, value: object, verb: Verb) -> None:
    if name in _REFUSED:
        harmless, why = _REFUSED[name]
        if value not in harmless:
            shown = "…" if name == "password" else repr(value)
            raise UsageError(f"{verb}({name}={shown}) on a group of nodes: {why.format(verb=verb)}")


def _environment(env: Mapping[str, Any]) -> dict[str, str]:
    wrong = [name for name in env if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)]
    if wrong:
        raise UsageError(f"env has {wrong[0]!r}, which is not a valid variable name")
    return {name: str(value) for name, value in env.items()}


def _timeout(timeout: float | None) -> float | None:
    if timeout is not None and timeout <= 0:
        raise UsageError(f"timeout={timeout}: a time in seconds is more than nothing")
    return timeout
