"""The errors with which the region refuses a request."""

from __future__ import annotations


class AwsError(Exception):
    """An error with AWS's own code and message."""

    def __init__(self, code: str, message: str, *, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


class NothingThere(Exception):
    """The request names something that is not in the region."""


class StandInRefusal(Exception):
    """The stand-in itself cannot do it: a type it does not know yet, machines that cannot be made on this computer."""
