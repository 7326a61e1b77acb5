"""How far this computer's clock is from AWS's, by the `Date` of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any  # botocore's answers

from botocore.exceptions import ClientError

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.refusal import aws_errors


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


def date_of(answer: Mapping[str, Any]) -> datetime | None:
    """When AWS sent the answer, by its own clock."""
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        return parsedate_to_datetime(headers["date"])
    except (KeyError, TypeError, ValueError):
        return None


def _is_about_time(refusal: ClientError) -> bool:
    code = str(refusal.response.get("Error", {}).get("Code"))
    return code in ("RequestExpired", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "InvalidSignatureException")
