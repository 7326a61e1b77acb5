"""An engine for tests: it knows its stack; running it, or asking it for state or locks, is an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from clusterctl.engine.boundary import RunRequest, RunResult
from clusterctl.engine.engine_start import EngineStart
from clusterctl.engine.environment import EngineEnvironment
from clusterctl.engine.lock import Lock
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import StackState
from clusterctl.output import Output
from clusterctl_infra.region_keys import RegionAccess


@dataclass(kw_only=True)
class FakeEngine:
    """Has every call of `engine/boundary.py`; a test's own engine overrides the calls that it answers."""

    stack: Stack
    environment: EngineEnvironment
    starts: tuple[EngineStart, ...] = ()
    begun_pids: list[int] = field(default_factory=list)

    def begun(self, pid: int) -> None:
        self.begun_pids.append(pid)

    def at(self, region: RegionAccess | None) -> Self:
        return self if region is None else replace(self, environment=self.environment.at(region))

    def after(self, starts: tuple[EngineStart, ...]) -> Self:
        return replace(self, starts=starts)

    def writing_state_once(self) -> Self:
        return replace(self, environment=self.environment.writing_state_once())

    def run(self, asked: RunRequest) -> RunResult:
        raise AssertionError(f"the engine was run: {asked.verb}")

    def export(self) -> StackState | None:
        raise AssertionError("the state was asked for")

    def create_stack(self) -> None:
        raise AssertionError("a stack was made")

    def select_stack(self, *, creates: bool = False) -> None:
        raise AssertionError("the stack was selected")

    def unprotect(self, urns: Sequence[str]) -> None:
        raise AssertionError(f"protection was taken from {urns}")

    def cancel(self) -> None:
        raise AssertionError("locks were removed")

    def backend_url(self) -> str:
        return self.environment.env["PULUMI_BACKEND_URL"]

    def refresh(self, urns: Sequence[str], *, clears_pending: bool = False) -> None:
        raise AssertionError(f"the cloud was asked about {urns}")

    def provide_plugin(self, output: Output) -> None:
        """The plugin is there already."""

    def held_by(self) -> tuple[Lock, ...]:
        raise AssertionError("the lock was taken")

    @property
    def cancel_by_hand(self) -> str:
        return f"cd {self.stack.directory} && pulumi cancel --stack {self.stack.name}"
