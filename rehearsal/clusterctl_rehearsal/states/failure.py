"""How a task or a whole execution fails."""

from __future__ import annotations

RUNTIME = "States.Runtime"
DATA_LIMIT = "States.DataLimitExceeded"
TIMEOUT = "States.Timeout"
NO_CHOICE = "States.NoChoiceMatched"
RESULT_PATH = "States.ResultPathMatchFailure"


class StatesError(Exception):
    """A failure, with the error's name in Step Functions and its cause."""

    def __init__(self, error: str, cause: str) -> None:
        super().__init__(f"{error}: {cause}")
        self.error = error
        self.cause = cause


class TaskFailed(StatesError):
    """An error of a task, which retriers and catchers can handle."""


class ExecutionFailed(StatesError):
    """An error that ends the execution: nothing in the definition catches it.

    AWS says so of Runtime and DataLimitExceeded, which States.ALL does not catch.
    """
