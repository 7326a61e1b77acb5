"""One run of the engine that changes things: started as a child, its events read, ended when its parent ends.

It writes its events into a file, which is read as it grows. A pipe would kill the engine (SIGPIPE) in the middle of
a change when this process is killed, and nobody would write the state (engine 3.250).
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any  # `Any`: what signal.signal gives back

from clusterctl_infra.errors import EngineError
from clusterctl_infra.private_home import make_private_folder

from clusterctl.engine.boundary import Engine, RunRequest, RunResult, Verb
from clusterctl.engine.environment import engine_hint
from clusterctl.engine.events import Event, Finished, Message, Step, parse_event, refusals
from clusterctl.engine.strays import end_program, end_run
from clusterctl.system.other_programs import ends_with_parent

POLL_S = 0.02
POLITE_INTERRUPTS = 2
CLOSING_S = 0.3
"""How long after its last event the engine may take before a program left without a language host is ended."""


def engine_argv(
    executable: str, verb: Verb, *, stack_name: str, config_file: Path, parallel: int, options: Sequence[str] = ()
) -> list[str]:
    """The engine's command line."""
    argv = [executable, verb, "--yes", "--skip-preview", "--json", "--non-interactive", "--parallel", str(parallel)]
    return [*argv, "--stack", stack_name, "--config-file", str(config_file), *options]


def parallel_for(nodes: int, *, rehearsal: bool) -> int:
    """How many resources change at once: by default the engine takes too few; AWS throttles beyond 32."""
    wanted = max(nodes, 16)
    return wanted if rehearsal else min(wanted, 32)


def run_engine(engine: Engine, asked: RunRequest) -> RunResult:
    """Runs the engine to its end; the first Ctrl-C lets it finish what it has begun, the second stops it at once,
    the third kills it.

    To be called from the main thread: the child gets its signal when the thread that started it ends (prctl(2)).
    """
    environment, log = engine.environment, asked.log
    argv = engine_argv(
        environment.executable,
        asked.verb,
        stack_name=engine.stack.name,
        config_file=asked.config_file or environment.config_file,
        parallel=asked.parallel,
        options=asked.options,
    )
    make_private_folder(log.parent)
    with _open_private(log) as stdout, _open_private(_error_log(log)) as stderr, log.open("rb") as reader:
        child = _start([*ends_with_parent(), *argv], engine, stdout=stdout, stderr=stderr)
        engine.begun(child.pid)  # setpriv and the wrapper exec the engine, so this pid is the one in its lock
        kept: list[Message] = []
        changes: Counter[str] = Counter()
        with _Interrupts(child, token=environment.run_token, tell=asked.on_interrupt) as interrupts:
            for event in _Follower(child, token=environment.run_token).events(reader):
                if isinstance(event, Message):
                    kept.append(event)
                elif isinstance(event, Step) and event.stage == "done" and event.is_custom:
                    changes[event.op] += 1
                asked.on_event(event)
    return _result(child.returncode, is_interrupted=interrupts.count > 0, changes=changes, kept=kept, log=log)


def _result(
    code: int, *, is_interrupted: bool, changes: Mapping[str, int], kept: list[Message], log: Path
) -> RunResult:
    """`code` is the engine's exit code, negative for the signal that it died of; `kept`: all that it said in events."""
    return RunResult(
        # A destroy that was asked to stop calls itself succeeded, with the rest still there (engine 3.250, tried
        # 2026-11-22).
        succeeded=code == 0 and not is_interrupted,
        interrupted=is_interrupted,
        changes=dict(changes),
        refusals=refusals(kept),
        log=log,
        stderr=_error_log(log).read_text(encoding="utf-8", errors="replace").strip(),
        killed_by=-code if code < 0 else None,
    )


def _error_log(log: Path) -> Path:
    return log.with_suffix(".err")


class _Follower:
    """Reads the growing file until the engine is gone."""

    def __init__(self, child: subprocess.Popen[bytes], *, token: str) -> None:
        self._child = child
        self._token = token
        self._is_over_since: float | None = None

    def events(self, reader: IO[bytes]) -> Iterator[Event]:
        rest = b""
        while True:
            is_gone = self._child.poll() is not None
            chunk = reader.read()
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                event = parse_event(line.decode(errors="replace"))
                if isinstance(event, Finished):
                    self._is_over_since = time.monotonic()
                if event is not None:
                    yield event
            if is_gone and not chunk:
                return
            self._hurry()
            time.sleep(POLL_S)

    def _hurry(self) -> None:
        if self._is_over_since is not None and time.monotonic() - self._is_over_since > CLOSING_S:
            end_program(self._token)
            self._is_over_since = time.monotonic()


class _Interrupts:
    """While entered, Ctrl-C reaches the engine as a signal instead of this program as an exception."""

    def __init__(self, child: subprocess.Popen[bytes], *, token: str, tell: Callable[[int], None]) -> None:
        self._child = child
        self._token = token
        self._tell = tell
        self._previous: Any = None
        self.count = 0

    def __enter__(self) -> _Interrupts:
        self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self._tell(self.count)
        if self._child.poll() is not None:
            return
        if self.count <= POLITE_INTERRUPTS:
            self._child.send_signal(signal.SIGINT)
        else:
            self._child.kill()
            end_run(self._token)


def _start(argv: list[str], engine: Engine, *, stdout: IO[bytes], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            argv,
            cwd=engine.stack.directory,
            env=dict(engine.environment.env),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    except OSError as e:
        raise EngineError(f"pulumi does not start: {e}", hint=engine_hint()) from e


def _open_private(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
