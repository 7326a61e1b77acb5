"""Short calls of the engine: export, cancel, stack init, targeted refresh. Each ends in its time."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clusterctl_infra.errors import EngineError

from clusterctl.engine.environment import EngineEnvironment
from clusterctl.engine.install_hint import engine_hint
from clusterctl.engine.lock import locks_named
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import StackState, parse_state

SHORT_S = 60.0
REFRESH_S = 600.0
_NO_STACK = "no stack named"


@dataclass(frozen=True, kw_only=True)
class Engine:
    """The engine on one stack, for calls that change nothing in the cloud."""

    stack: Stack
    environment: EngineEnvironment

    def at(self, endpoint_url: str | None) -> Engine:
        """The same engine, told where the rehearsed region listens."""
        return self if endpoint_url is None else replace(self, environment=self.environment.at(endpoint_url))

    def writing_state_once(self) -> Engine:
        """The same engine, which writes its state at the end of a run alone."""
        return replace(self, environment=self.environment.writing_state_once())

    def export(self) -> StackState | None:
        """The state; None when the stack does not exist yet. Raises EngineError."""
        done = self._call(["stack", "export"], timeout_s=SHORT_S)
        if done.returncode != 0 and _NO_STACK in done.stderr:
            return None
        self._check(done)
        try:
            return parse_state(done.stdout)
        except (ValueError, AttributeError, TypeError) as e:
            hint = self._by_hand(["stack", "export"])
            raise EngineError(f"pulumi stack export printed what is not a state: {e}", hint=hint) from e

    def create_stack(self) -> None:
        """Makes the stack in the backend. Raises EngineError."""
        words = ["stack", "init", self.stack.name, "--no-select"]
        self._check(self._call(words, timeout_s=SHORT_S, has_stack=False))

    def unprotect(self, urns: Sequence[str]) -> None:
        """Lets a coming run delete these resources. Raises EngineError."""
        self._check(self._call(["state", "unprotect", *urns, "--yes"], timeout_s=SHORT_S))

    def cancel(self) -> None:
        """Removes the stack's locks. Raises EngineError."""
        self._check(self._call(["cancel", "--yes"], timeout_s=SHORT_S))

    def backend_url(self) -> str:
        """Where the state is kept. Raises EngineError."""
        if chosen := self.environment.env.get("PULUMI_BACKEND_URL"):
            return chosen
        done = self._call(["whoami", "--verbose"], timeout_s=SHORT_S, has_stack=False)
        self._check(done)
        rows = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)
        return rows.get("Backend URL", "").strip()

    def refresh(self, urns: Sequence[str], *, clears_pending: bool = False) -> None:
        """Asks the cloud about these resources (none: about all); what is gone leaves the state. Raises EngineError.

        Aimed at the stack's own URN it reads nothing, and still clears pending creates (engine 3.250).
        """
        argv = ["refresh", "--yes", "--skip-preview", "--suppress-outputs"]
        argv += ["--clear-pending-creates"] if clears_pending else []
        argv += [word for urn in urns for word in ("--target", urn)]
        self._check(self._call(argv, timeout_s=REFRESH_S))

    def refuse_held(self) -> None:
        """Raises EngineError when somebody is changing the stack: takes its lock for a second, and changes nothing."""
        argv = ["refresh", "--yes", "--skip-preview", "--suppress-outputs", "--skip-pending-creates"]
        done = self._call([*argv, "--target", self.stack.urn], timeout_s=SHORT_S)
        if locks := locks_named(done.stderr):
            raise EngineError(locks[0].named, hint=self._by_hand(["cancel"]))
        self._check(done)

    def _call(
        self, words: Sequence[str], *, timeout_s: float, has_stack: bool = True
    ) -> subprocess.CompletedProcess[str]:
        argv = [self.environment.executable, *words, "--non-interactive", "--color", "never"]
        argv += ["--stack", self.stack.name] if has_stack else []
        try:
            return subprocess.run(
                argv,
                cwd=self.environment.config_file.parent,
                env=dict(self.environment.env),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as e:
            told = f"pulumi {' '.join(words[:2])} did not end in {timeout_s:.0f} s: does the backend answer?"
            raise EngineError(told, hint="pulumi whoami --verbose") from e
        except OSError as e:
            raise EngineError(f"pulumi does not start: {e}", hint=engine_hint()) from e

    def _check(self, done: subprocess.CompletedProcess[str]) -> None:
        if done.returncode != 0:
            words = " ".join(done.args[1:3])
            said = done.stderr.strip() or done.stdout.strip()
            told = f"pulumi {words} failed: {said.removeprefix('error: ')}"
            raise EngineError(told, hint=self._by_hand(["stack"]))

    def _by_hand(self, words: Sequence[str]) -> str:
        """The command that shows a person what the engine says to us."""
        folder = self.environment.config_file.parent
        return f"cd {shlex.quote(str(folder))} && pulumi {shlex.join(words)} --stack {self.stack.name}"
