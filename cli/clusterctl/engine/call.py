"""The `Engine` that starts pulumi. Every call but `run` has a deadline."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from clusterctl_infra.errors import EngineError
from clusterctl_infra.region_keys import RegionAccess
from clusterctl_infra.strict_json import Fields

from clusterctl.engine.aws_plugin import provide_aws_plugin
from clusterctl.engine.backend import home_of_user, whole_url
from clusterctl.engine.boundary import RunRequest, RunResult
from clusterctl.engine.engine_start import EngineStart
from clusterctl.engine.environment import EngineEnvironment, engine_hint
from clusterctl.engine.lock import Lock, locks_named
from clusterctl.engine.run import run_engine
from clusterctl.engine.stack import Stack
from clusterctl.engine.stack_config import read_config, secrets_provider
from clusterctl.engine.state import StackState, parse_state, state_of
from clusterctl.engine.state_in_files import state_in_files
from clusterctl.output import Output
from clusterctl.system.disk_space import full_disk_text, full_folder, look_at

SHORT_S = 60.0
REFRESH_S = 600.0
_NO_STACK = "no stack named"


def noted_nowhere(pid: int) -> None:
    """Ignores the pid: for an engine that takes no lock."""


@dataclass(kw_only=True)
class PulumiEngine:
    """The engine on one stack; `run` alone changes anything in the cloud."""

    stack: Stack
    environment: EngineEnvironment
    starts: tuple[EngineStart, ...] = ()
    """The engine's starts in earlier runs that failed or were killed: locks may be theirs."""
    begun: Callable[[int], None] = noted_nowhere
    """Called with the pid of each engine that may take the lock, when it has started."""
    _backend_urls: list[str] = field(default_factory=list, repr=False, compare=False)
    """The backend's URL, once it was asked for."""

    def at(self, region: RegionAccess | None) -> PulumiEngine:
        """This engine, told where the rehearsed region listens."""
        return self if region is None else replace(self, environment=self.environment.at(region))

    def after(self, starts: tuple[EngineStart, ...]) -> PulumiEngine:
        """This engine, told of its starts in earlier runs that failed or were killed."""
        return replace(self, starts=starts)

    def writing_state_once(self) -> PulumiEngine:
        """This engine, told to write its state only at the end of a run."""
        return replace(self, environment=self.environment.writing_state_once())

    def run(self, asked: RunRequest) -> RunResult:
        """Changes the cloud; see `run_engine` for what Ctrl-C does. Raises EngineError when it did not start."""
        return run_engine(self, asked)

    def export(self) -> StackState | None:
        """The state; None when the stack does not exist yet. Raises EngineError.

        A state in a backend of files is read here if it can be: the engine's start would take longer.
        """
        if self.environment.env.get("PULUMI_BACKEND_URL") or self._backend_urls:  # else the engine says where that is
            found = state_in_files(self.backend_url(), self.stack, self.environment.env)
            if found is not None:
                return None if found.deployment is None else self._parsed(lambda: state_of(Fields.of(found.deployment)))
        done = self._call(["stack", "export"], timeout_s=SHORT_S)
        if done.returncode != 0 and _NO_STACK in done.stderr:
            return None
        self._check(done)
        return self._parsed(lambda: parse_state(done.stdout))

    def _parsed(self, parse: Callable[[], StackState]) -> StackState:
        try:
            return parse()
        except ValueError as e:
            hint = self._by_hand(["stack", "export"])
            raise EngineError(f"what pulumi stack export prints is not a state: {e}", hint=hint) from e

    def create_stack(self) -> None:
        """Makes the stack in the backend, and selects it in this environment's PULUMI_HOME.

        What its config file names encrypts its secrets; the engine itself would choose a passphrase.

        Raises EngineError, ConfigError.
        """
        provider = secrets_provider(read_config(self.environment.config_file))
        words = ["stack", "init", self.stack.name, *(["--secrets-provider", provider] if provider else [])]
        self._check(self._call(words, timeout_s=SHORT_S, has_stack=False, takes_lock=True))

    def select_stack(self, *, creates: bool = False) -> None:
        """Has plain `pulumi` in the stack's folder mean this stack; `creates`: makes an empty one where there is none.

        Raises EngineError.
        """
        words = ["stack", "select", self.stack.name, *(["--create"] if creates else [])]
        self._check(self._call(words, timeout_s=SHORT_S, has_stack=False, takes_lock=creates))

    def unprotect(self, urns: Sequence[str]) -> None:
        """Lets a coming run delete these resources. Raises EngineError."""
        self._check(self._call(["state", "unprotect", *urns, "--yes"], timeout_s=SHORT_S, takes_lock=True))

    def cancel(self) -> None:
        """Removes the stack's locks. Raises EngineError."""
        self._check(self._call(["cancel", "--yes"], timeout_s=SHORT_S))

    def backend_url(self) -> str:
        """Where the state is kept; a path is given in full. Raises EngineError."""
        if not self._backend_urls:
            url = self.environment.env.get("PULUMI_BACKEND_URL") or self._asked_backend_url()
            whole = whole_url(url, folder=self.environment.config_file.parent, user_home=home_of_user())
            self._backend_urls.append(whole)
        return self._backend_urls[0]

    def _asked_backend_url(self) -> str:
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
        self._check(self._call(argv, timeout_s=REFRESH_S, takes_lock=True))

    def held_by(self) -> tuple[Lock, ...]:
        """The locks that keep others from the stack. It takes the lock for a second itself, and changes nothing.

        Raises EngineError.
        """
        argv = ["refresh", "--yes", "--skip-preview", "--suppress-outputs", "--skip-pending-creates"]
        done = self._call([*argv, "--target", self.stack.urn], timeout_s=SHORT_S, takes_lock=True)
        locks = locks_named(done.stderr)
        if not locks and _NO_STACK not in done.stderr:
            self._check(done)
        return locks

    def provide_plugin(self, output: Output) -> None:
        """Returns when the engine has its AWS plugin; the stand-in is always there. Raises EngineError."""
        if not self.environment.rehearsal:
            provide_aws_plugin(self.environment, output)

    @property
    def cancel_by_hand(self) -> str:
        """What a person types to remove the lock of somebody who is known to be gone."""
        return self._by_hand(["cancel"])

    def _call(
        self, words: Sequence[str], *, timeout_s: float, has_stack: bool = True, takes_lock: bool = False
    ) -> subprocess.CompletedProcess[str]:
        argv = [self.environment.executable, *words, "--non-interactive", "--color", "never"]
        argv += ["--stack", self.stack.name] if has_stack else []
        try:
            child = subprocess.Popen(
                argv,
                cwd=self.environment.config_file.parent,
                env=dict(self.environment.env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        except OSError as e:
            raise EngineError(f"pulumi does not start: {e}", hint=engine_hint()) from e
        with child:
            try:
                if takes_lock:
                    self.begun(child.pid)
                stdout, stderr = child.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired as e:
                child.kill()
                message = f"pulumi {' '.join(words[:2])} did not end in {timeout_s:.0f} s: does the backend answer?"
                raise EngineError(message, hint="pulumi whoami --verbose") from e
            except BaseException:
                child.kill()
                raise
        return subprocess.CompletedProcess(argv, child.returncode, stdout, stderr)

    def _check(self, done: subprocess.CompletedProcess[str]) -> None:
        if done.returncode == 0:
            return
        if locks := locks_named(done.stderr):
            raise EngineError(locks[0].message, hint=locks[0].end_it(cancel=self.cancel_by_hand))
        words = " ".join(done.args[1:3])
        reported = done.stderr.strip() or done.stdout.strip()
        full = full_folder(reported, log=self.stack.directory, is_silent=False)
        if full is not None:
            raise EngineError(f"pulumi {words} failed: {full_disk_text(full)}", hint=look_at(full))
        message = f"pulumi {words} failed: {reported.removeprefix('error: ')}"
        raise EngineError(message, hint=self._by_hand(["stack"]))

    def _by_hand(self, words: Sequence[str]) -> str:
        """The pulumi command as a person types it, with the backend that it needs."""
        folder = self.environment.config_file.parent
        has_own_backend = self.environment.rehearsal and not self.stack.is_rehearsal_project
        backend = self.environment.env.get("PULUMI_BACKEND_URL", "") if has_own_backend else ""
        setting = f"PULUMI_BACKEND_URL={shlex.quote(backend)} " if backend else ""  # else pulumi uses the person's own
        return f"cd {shlex.quote(str(folder))} && {setting}pulumi {shlex.join(words)} --stack {self.stack.name}"
