"""The engine's AWS plugin: whether it is on this computer, and its download, which is announced and shown.

Without this the engine would fetch it in the middle of its first run, without a word for minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from importlib.metadata import version

from clusterctl_infra.errors import EngineError

from clusterctl.engine.environment import EngineEnvironment
from clusterctl.output import Output

FETCH_S = 1800.0
"""A choice: a plugin of hundreds of MB over a slow line."""
LIST_S = 60.0
TICK_S = 1.0
PLUGIN_PROGRAM = "pulumi-resource-aws"
NO_FETCHING = "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"
"""Pulumi's variable by which a person forbids downloads (Pulumi docs, "Environment variables"; before 2026)."""


def provide_aws_plugin(environment: EngineEnvironment, output: Output) -> None:
    """Returns when the engine has its AWS plugin, of the version that the Python package pulumi_aws wants.

    Raises EngineError where it is not there and cannot be fetched.
    """
    wanted = version("pulumi_aws")
    if is_on_path(environment) or wanted in listed(environment):
        return
    by_hand = f"pulumi plugin install resource aws {wanted}"
    what = f"the engine's AWS plugin {wanted}"
    if environment.env.get(NO_FETCHING, "").lower() in ("1", "true"):
        raise EngineError(f"{what} is not on this computer, and {NO_FETCHING} forbids fetching it", hint=by_hand)
    output.note(f"  plugin   {what} is not here: pulumi fetches it now, once; its size is not known beforehand")
    began = time.monotonic()
    try:
        last_line = fetched(environment, wanted, show=lambda line, s: output.live(f"  plugin   {s:.0f} s · {line}"))
    except EngineError as e:
        raise EngineError(f"{what} could not be fetched: {e.message}. Nothing was changed", hint=by_hand) from e
    if wanted not in listed(environment):
        raise EngineError(f"{what} was fetched, but the engine does not list it: {last_line}", hint="pulumi plugin ls")
    output.note(f"  plugin   fetched in {time.monotonic() - began:.0f} s")


def is_on_path(environment: EngineEnvironment) -> bool:
    """Whether the engine finds the plugin on PATH, which it prefers to its own folder."""
    if environment.env.get("PULUMI_IGNORE_AMBIENT_PLUGINS", "").lower() in ("1", "true"):
        return False
    return shutil.which(PLUGIN_PROGRAM, path=environment.env.get("PATH", os.defpath)) is not None


def listed(environment: EngineEnvironment) -> frozenset[str]:
    """The versions of the AWS plugin that the engine has. Raises EngineError."""
    argv = [environment.executable, "plugin", "ls", "--json"]
    try:
        done = subprocess.run(
            argv,
            env=dict(environment.env),
            cwd=environment.config_file.parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIST_S,
            check=True,
        )
        return versions_in(done.stdout)
    except subprocess.CalledProcessError as e:
        raise EngineError(f"pulumi plugin ls failed: {e.stderr.strip()}", hint="pulumi plugin ls") from e
    except (OSError, subprocess.TimeoutExpired, ValueError) as e:
        raise EngineError(f"pulumi plugin ls failed: {e}", hint="pulumi plugin ls") from e


def versions_in(text: str) -> frozenset[str]:
    """The versions of the AWS plugin in what `pulumi plugin ls --json` printed. Raises ValueError."""
    rows = json.loads(text)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"not a list of plugins: {text[:80]!r}")
    return frozenset(
        str(row.get("version")) for row in rows if (row.get("kind"), row.get("name")) == ("resource", "aws")
    )


def fetched(environment: EngineEnvironment, wanted: str, *, show: Callable[[str, float], None]) -> str:
    """Has the engine fetch the plugin; returns the engine's last line. Raises EngineError with that line.

    `show` gets the newest line and the seconds since the start, every TICK_S.
    """
    argv = [environment.executable, "plugin", "install", "resource", "aws", wanted]
    argv += ["--non-interactive", "--color", "never"]
    lines: list[str] = []
    began = time.monotonic()
    try:
        child = subprocess.Popen(
            argv,
            env=dict(environment.env),
            cwd=environment.config_file.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as e:
        raise EngineError(str(e)) from e
    with child:
        assert child.stdout is not None
        stream = child.stdout
        reader = threading.Thread(target=lambda: lines.extend(_without_prefix(line) for line in stream), daemon=True)
        reader.start()
        try:
            while (code := _ended(child)) is None:
                spent_s = time.monotonic() - began
                if spent_s > FETCH_S:
                    raise EngineError(f"not within {FETCH_S / 60:.0f} minutes; its last line: {_last(lines)}")
                show(_last(lines), spent_s)
        except BaseException:
            child.kill()
            raise
        reader.join(timeout=LIST_S)
    if code != 0:
        raise EngineError(_last(lines))
    return _last(lines)


def _ended(child: subprocess.Popen[str]) -> int | None:
    """The exit code, or None if the child still runs after TICK_S."""
    try:
        return child.wait(timeout=TICK_S)
    except subprocess.TimeoutExpired:
        return None


def _without_prefix(line: str) -> str:
    return line.strip().removeprefix("error: ")


def _last(lines: list[str]) -> str:
    return next((line for line in reversed(lines) if line), "pulumi printed nothing")
