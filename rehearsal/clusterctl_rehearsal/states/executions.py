"""Executions of state machines: begun by a schedule or by StartExecution, each in a thread of its own.

However an execution ends, its end is written to a file before `ended` is called.
"""

from __future__ import annotations

import dataclasses
import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol  # a machine's inputs are JSON

from clusterctl_rehearsal.full_disk import log, log_traceback
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.states.ended_executions import ExecutionRow, append_ended, read_ended, replace_ended
from clusterctl_rehearsal.states.failure import RUNTIME, TIMEOUT, StatesError
from clusterctl_rehearsal.states.interpreter import Call, Execution

KEPT = 100
"""How many executions are remembered after their end, the newest ones; AWS remembers each for 90 days."""


class StateMachine(Protocol):
    """What an execution needs of its state machine; the region's record of one has it."""

    @property
    def id(self) -> str: ...

    @property
    def region(self) -> str: ...

    @property
    def inputs(self) -> Mapping[str, Any]: ...


class Executions:
    """Executions. Those that have ended are in a file. A region that ends forgets those under way; the next region's
    schedules start them again.
    """

    def __init__(
        self,
        *,
        file: Path,
        calls: Callable[[str], Call],
        after: Callable[[ExecutionRow], None] = lambda row: None,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
        begin: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        """`calls`: returns the function that calls a region's EC2; `after`: is called with each execution that ended;
        `begin`: runs an execution, by default in a thread. Raises OSError if the file cannot be read.
        """
        self._file = file
        self._calls = calls
        self._after = after
        self._clock = clock
        self._pause = pause
        self._begin = _in_thread if begin is None else begin
        self._rows = _remembered(file)
        self._by_region: dict[str, Call] = {}

    def start(
        self,
        machine: StateMachine,
        given: str,
        ended: Callable[[], None] = lambda: None,
        *,
        undone: Callable[[], None] = lambda: None,
        name: str | None = None,
    ) -> ExecutionRow:
        """Starts an execution of a state machine and returns it. `ended` is called when it is over, however it went;
        `undone` instead if its end could not be written down, or if `ended` raised an exception.

        Raises AwsError if there is one of this name, or if `given` is not JSON; what `begin` raises if it cannot begin.
        """
        _check_input(given)
        arn = f"{machine.id.replace(':stateMachine:', ':execution:')}:{name or uuid.uuid4()}"
        if arn in self._rows:
            raise AwsError("ExecutionAlreadyExists", f"Execution Already Exists: '{arn}'")
        row = ExecutionRow(arn=arn, machine_arn=machine.id, started_at=self._clock(), given=given)
        self._keep(row)

        def run() -> None:
            try:
                over = self._ended(row, machine)
                self._keep(over)
                self._after(over)
                append_ended(self._file, over)
                ended()
            except BaseException:
                undone()
                raise

        try:
            self._begin(run)
        except BaseException:
            if self._rows.get(arn) is row:  # it did not begin
                self._rows.pop(arn, None)
            raise
        return self._rows[arn]

    def find(self, arn: str) -> ExecutionRow | None:
        """The execution, under way or over; None if it is not remembered."""
        return self._rows.get(arn)

    def of_machine(self, machine_arn: str) -> tuple[ExecutionRow, ...]:
        """The executions of a state machine, oldest first."""
        return tuple(row for row in list(self._rows.values()) if row.machine_arn == machine_arn)

    def _ended(self, row: ExecutionRow, machine: StateMachine) -> ExecutionRow:
        """Runs the execution, and returns it as it ended."""
        try:
            output = json.dumps(self._run(machine, json.loads(row.given)))
        except StatesError as e:
            log(f"execution {row.arn} failed: {e}")
            status = "TIMED_OUT" if e.error == TIMEOUT else "FAILED"
            return dataclasses.replace(row, status=status, ended_at=self._clock(), error=e.error, cause=e.cause)
        except Exception as e:  # noqa: BLE001 — the thread's boundary: a crashed execution must not seem to run
            log_traceback()
            cause = f"{type(e).__name__}: {e}"
            return dataclasses.replace(row, status="FAILED", ended_at=self._clock(), error=RUNTIME, cause=cause)
        return dataclasses.replace(row, status="SUCCEEDED", ended_at=self._clock(), output=output)

    def _run(self, machine: StateMachine, given: Any) -> Any:
        if machine.region not in self._by_region:
            self._by_region[machine.region] = self._calls(machine.region)
        call, definition = self._by_region[machine.region], json.loads(machine.inputs["definition"])
        return Execution(definition=definition, call=call, pause=self._pause, clock=self._clock).run(given)

    def _keep(self, row: ExecutionRow) -> None:
        self._rows[row.arn] = row
        ended = {other.arn: other.ended_at for other in list(self._rows.values()) if other.ended_at is not None}
        for arn in sorted(ended, key=lambda arn: ended[arn])[:-KEPT]:
            self._rows.pop(arn, None)


def _remembered(file: Path) -> dict[str, ExecutionRow]:
    """ARN → execution, of the newest in the file, oldest first; the file has no others afterwards."""
    rows = read_ended(file)
    if len(rows) > KEPT:
        rows = rows[-KEPT:]
        replace_ended(file, rows)
    return {row.arn: row for row in sorted(rows, key=lambda row: row.started_at)}


def _check_input(given: str) -> None:
    try:
        json.loads(given)
    except ValueError as e:
        raise AwsError("InvalidExecutionInput", f"Invalid State Machine Execution Input: '{e}'") from e


def _in_thread(run: Callable[[], None]) -> None:
    threading.Thread(target=run, daemon=True, name="execution").start()
