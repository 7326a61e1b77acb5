"""The command that has AWS raise a quota of the account's, and the rehearsed region the one that it simulates."""

from __future__ import annotations


def raise_quota(name: str, code: str | None, wanted: int, *, region: str, is_rehearsal: bool) -> str:
    """`name`: the rehearsed region's word for it; `code`: Service Quotas', such as L-417A185B, None: not known here."""
    if is_rehearsal:
        return f"clusterctl rehearse fault quota {name}={wanted}"
    if code is None:
        return f"aws service-quotas list-service-quotas --region {region} --service-code ec2 --output table"
    return (
        f"aws service-quotas request-service-quota-increase --region {region} --service-code ec2 --quota-code {code} "
        f"--desired-value {wanted}"
    )
