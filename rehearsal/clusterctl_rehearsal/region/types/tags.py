"""Which tags services refuse; EC2 takes some that others do not."""

from __future__ import annotations

import re
from collections.abc import Mapping

from clusterctl_rehearsal.refusal import AwsError

LETTERS = r"[\w\s.:/=+\-@]"
CODES = {"IAM": "ValidationError", "FSx": "BadRequest", "EFS": "ValidationException"}
"""Service that takes only these characters → its error code for others (API models in botocore 1.44; 2026-11-22)."""


def check_tags(service: str, tags: Mapping[str, str]) -> None:
    """Raises AwsError for tags that the service refuses."""
    if service not in CODES:
        return
    for key, value in tags.items():
        if not re.fullmatch(LETTERS + "{1,128}", key) or not re.fullmatch(LETTERS + "{0,256}", value):
            message = "failed to satisfy constraint: Member must satisfy regular expression pattern"
            raise AwsError(CODES[service], f"Value '{value}' at 'tags.member.value' of '{key}' {message}")
    if service == "IAM" and len({key.lower() for key in tags}) < len(tags):
        raise AwsError("InvalidInput", "Duplicate tag keys found. Please note that Tag keys are case insensitive.")
