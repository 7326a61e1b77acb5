"""The engine as the rest of the command line knows it; `engine/call.py` has the one that starts pulumi."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from clusterctl_infra.region_keys import RegionAccess

from clusterctl.engine.engine_start import EngineStart
from clusterctl.engine.environment import EngineEnvironment
from clusterctl.engine.events import Event, Refusal
from clusterctl.engine.lock import Lock
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import StackState
from clusterctl.output import Output

Verb = Literal["up", "destroy"]


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """One run that changes things."""

    verb: Verb
    parallel: int
    """How many resources change at once."""
    log: Path
    """The file that the engine's events are written to."""
    on_event: Callable[[Event], None]
    on_interrupt: Callable[[int], None]
    """Called with how often Ctrl-C was pressed so far."""
    options: tuple[str, ...] = ()
    """More arguments for the engine."""
    config_file: Path | None = None
    """Another config file instead of the stack's own."""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """How the engine ended."""

    succeeded: bool
    interrupted: bool
    changes: Mapping[str, int]
    """Operation → how many resources it was done to; components and providers do not count."""
    refusals: tuple[Refusal, ...]
    log: Path
    """The engine's events, as it wrote them."""
    stderr: str
    """What it wrote to stderr, for failures that are no events."""
    killed_by: int | None = None
    """The signal that ended it: its plugins may still work, and its lock on the state is left."""


class Engine(Protocol):
    """The engine on one stack; `run` alone changes anything in the cloud. Any call may raise EngineError."""

    @property
    def stack(self) -> Stack:
        """The stack."""

    @property
    def environment(self) -> EngineEnvironment:
        """What the engine is started with."""

    @property
    def starts(self) -> tuple[EngineStart, ...]:
        """The engine's starts in earlier runs that failed or were killed: locks may be theirs."""

    def begun(self, pid: int) -> None:
        """Notes that an engine that may take the lock has started."""

    def at(self, region: RegionAccess | None) -> Engine:
        """This engine, told where the rehearsed region listens."""

    def after(self, starts: tuple[EngineStart, ...]) -> Engine:
        """This engine, told of its starts in earlier runs that failed or were killed."""

    def writing_state_once(self) -> Engine:
        """This engine, told to write its state only at the end of a run."""

    def run(self, asked: RunRequest) -> RunResult:
        """Changes the cloud as the program says, or ends all that the state has; returns when the engine has ended."""

    def export(self) -> StackState | None:
        """The state; None when the stack does not exist yet."""

    def create_stack(self) -> None:
        """Makes the stack in the backend, and selects it in this environment's PULUMI_HOME."""

    def select_stack(self, *, creates: bool = False) -> None:
        """Has plain `pulumi` in the stack's folder mean this stack; `creates`: makes one where there is none."""

    def unprotect(self, urns: Sequence[str]) -> None:
        """Lets a coming run delete these resources."""

    def cancel(self) -> None:
        """Removes the stack's locks."""

    def backend_url(self) -> str:
        """Where the state is kept; a path is given in full."""

    def refresh(self, urns: Sequence[str], *, clears_pending: bool = False) -> None:
        """Asks the cloud about these resources (none given: about all); the state loses those that are gone."""

    def held_by(self) -> tuple[Lock, ...]:
        """The locks that keep others from the stack."""

    def provide_plugin(self, output: Output) -> None:
        """Returns when the engine has its AWS plugin: one that is missing is fetched, announced and shown."""

    @property
    def cancel_by_hand(self) -> str:
        """What a person types to remove the lock of somebody who is known to be gone."""
