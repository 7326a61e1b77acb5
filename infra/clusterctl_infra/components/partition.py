"""Which of AWS's separate clouds a region is in: the second word of every ARN."""

from __future__ import annotations


def partition(region: str) -> str:
    """`aws`, `aws-cn` or `aws-us-gov`."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"
