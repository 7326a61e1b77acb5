"""Executions of state machines: begun by a schedule or by StartExecution, each in a thread of its own."""

from __future__ import annotations

import dataclasses
import json
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol  # a machine's inputs are JSON

from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.states.failure import TIMEOUT, ExecutionFailed
from clusterctl_rehearsal.states.interpreter import Call, Execution

KEPT = 100
"""How many executions are remembered, the newest ones; AWS remembers each for 90 days after its end."""


@dataclass(frozen=True, kw_only=True)
class ExecutionRow:
    """One execution as DescribeExecution shows it."""

    arn: str
    machine_arn: str
    started_at: float
    given: str
    status: str = "RUNNING"
    ended_at: float | None = None
    output: str | None = None
    error: str | None = None
    cause: str | None = None


class StateMachine(Protocol):
    """What an execution needs of its state machine; the region's record of one has it."""

    @property
    def id(self) -> str: ...

    @property
    def region(self) -> str: ...

    @property
    def inputs(self) -> Mapping[str, Any]: ...


class Executions:
    """Executions, kept in memory: a region that ends forgets them; schedules then start those under way again."""

    def __init__(
        self,
        *,
        calls: Callable[[str], Call],
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
        begin: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        """`calls`: gives the function that calls a region's EC2; `begin`: runs an execution, by default in a thread."""
        self._calls = calls
        self._clock = clock
        self._pause = pause
        self._begin = _in_thread if begin is None else begin
        self._rows: dict[str, ExecutionRow] = {}
        self._by_region: dict[str, Call] = {}

    def start(
        self, machine: StateMachine, given: str, ended: Callable[[], None] = lambda: None, *, name: str | None = None
    ) -> ExecutionRow:
        """Starts an execution of a state machine and returns it; `ended` is called when it is over, however it went.

        Raises AwsError if there is one of this name.
        """
        arn = f"{machine.id.replace(':stateMachine:', ':execution:')}:{name or uuid.uuid4()}"
        if arn in self._rows:
            raise AwsError("ExecutionAlreadyExists", f"Execution Already Exists: '{arn}'")
        row = ExecutionRow(arn=arn, machine_arn=machine.id, started_at=self._clock(), given=given)
        self._keep(row)
        definition = json.loads(machine.inputs["definition"])

        def run() -> None:
            try:
                self._keep(self._ended(row, definition, machine.region))
            finally:
                ended()

        self._begin(run)
        return self._rows[arn]

    def find(self, arn: str) -> ExecutionRow | None:
        """The execution, under way or over; None if it is not remembered."""
        return self._rows.get(arn)

    def of_machine(self, machine_arn: str) -> tuple[ExecutionRow, ...]:
        """The executions of a state machine, oldest first."""
        return tuple(row for row in list(self._rows.values()) if row.machine_arn == machine_arn)

    def _ended(self, row: ExecutionRow, definition: dict[str, object], region: str) -> ExecutionRow:
        try:
            if region not in self._by_region:
                self._by_region[region] = self._calls(region)
            call = self._by_region[region]
            execution = Execution(definition=definition, call=call, pause=self._pause, clock=self._clock)
            output = json.dumps(execution.run(json.loads(row.given)))
        except ExecutionFailed as e:
            print(f"execution {row.arn} failed: {e}", file=sys.stderr)
            status = "TIMED_OUT" if e.error == TIMEOUT else "FAILED"
            return dataclasses.replace(row, status=status, ended_at=self._clock(), error=e.error, cause=e.cause)
        return dataclasses.replace(row, status="SUCCEEDED", ended_at=self._clock(), output=output)

    def _keep(self, row: ExecutionRow) -> None:
        self._rows[row.arn] = row
        while len(self._rows) > KEPT:
            self._rows.pop(next(iter(self._rows)))


def _in_thread(run: Callable[[], None]) -> None:
    threading.Thread(target=run, daemon=True, name="execution").start()
