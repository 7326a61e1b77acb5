"""How a task or a whole execution fails."""

from __future__ import annotations

RUNTIME = "States.Runtime"
DATA_LIMIT = "States.DataLimitExceeded"
TIMEOUT = "States.Timeout"


class StatesError(Exception):
    """An error's name and its cause."""

    def __init__(self, error: str, cause: str) -> None:
        super().__init__(f"{error}: {cause}")
        self.error = error
        self.cause = cause


class TaskFailed(StatesError):
    """An error of a task, which retriers and catchers can handle."""


class ExecutionFailed(StatesError):
    """Nothing in the definition catches it, as AWS says of Runtime and DataLimitExceeded with States.ALL."""
