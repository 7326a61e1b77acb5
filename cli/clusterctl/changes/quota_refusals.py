"""What helps where AWS makes no machine on demand because the account may not have so many. Pure."""

from __future__ import annotations

from clusterctl.changes.help import Help
from clusterctl.changes.intent import Intent
from clusterctl.cloud.quota import raise_quota
from clusterctl.cloud.vcpus import quota_code
from clusterctl.engine.run import RunResult

CODES = ("VcpuLimitExceeded", "InstanceLimitExceeded")
"""EC2 API, "Error codes for the Amazon EC2 API" (2026-11-22)."""


def quota_help(result: RunResult, intent: Intent, *, is_rehearsal: bool) -> Help | None:
    """None for all that is no quota of machines on demand."""
    config = intent.config
    codes = {refusal.code for refusal in result.refusals}
    row = config.instance_row(intent.catalog)
    if config.capacity == "spot" or row is None or codes.isdisjoint(CODES):
        return None
    vcpus = config.nodes * row.vcpus
    return Help(
        sentence=f"Machines on demand have quotas in vCPUs, places that are reserved count, and {config.nodes} × "
        f"{row.name} are {vcpus:,}, beside what else runs in the account; AWS raises a quota on request.",
        hint=raise_quota("vcpus", quota_code(row.family), vcpus, region=config.region, is_rehearsal=is_rehearsal),
    )
