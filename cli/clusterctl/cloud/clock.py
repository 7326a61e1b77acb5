"""How far this computer's clock is from AWS's, by the `Date` of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any  # botocore's answers

from botocore.exceptions import ClientError
from clusterctl_infra.errors import CloudError

from clusterctl.cloud.answers import CLOCK_TOLERANCE, date_of
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.refusal import aws_errors
from clusterctl.text.quantities import duration


def refuse_wrong_clock(clients: Clients, *, undone: str = "nothing was created") -> None:
    """Raises CloudError if this computer's clock is too far from AWS's.

    Deadlines are computed here and enforced by AWS and the nodes: both have to mean the same time.
    """
    skew = clock_skew(clients, now=lambda: datetime.now(UTC))
    if skew is not None and abs(skew) > CLOCK_TOLERANCE:
        raise CloudError(wrong_clock(skew, undone=undone), code="ClockSkew", hint="timedatectl set-ntp true")


def wrong_clock(skew: timedelta, *, undone: str = "nothing was created") -> str:
    """The sentence about a clock that is wrong by `skew`; `undone`: what was not done because of it."""
    way = "ahead of" if skew > timedelta(0) else "behind"
    return (
        f"this computer's clock is {duration(skew)} {way} AWS's (at most {duration(CLOCK_TOLERANCE)} is allowed): "
        f"every deadline would be wrong by as much, so {undone}; set the clock"
    )


def clock_skew(clients: Clients, *, now: Callable[[], datetime]) -> timedelta | None:
    """By how much this computer is ahead; None when the answer has no date. Raises CloudError.

    `Date` has whole seconds. AWS refuses requests signed more than 5 minutes off (Signature Version 4), and that
    refusal has a date too: it says more than its code does.
    """
    before = now()
    with aws_errors("asking AWS for the time"):
        try:
            answer: Mapping[str, Any] = clients.caller_identity()
        except ClientError as refusal:
            answer = refusal.response
            if not _is_about_time(refusal):
                raise
    middle = before + (now() - before) / 2
    at = date_of(answer)
    return None if at is None else middle - at


def _is_about_time(refusal: ClientError) -> bool:
    code = str(refusal.response.get("Error", {}).get("Code"))
    return code in ("RequestExpired", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "InvalidSignatureException")
