"""What helps when AWS refuses machines: a sentence for each of its codes about spot capacity and quotas. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl_infra.catalog.fresh_prices import refresh_command

from clusterctl.cloud.quotas import quota_code, raise_quota
from clusterctl.engine.boundary import RunResult
from clusterctl.lifecycle.intent import Intent
from clusterctl.text.next_commands import edit

ROLE = "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
_QUOTAS = "--query \"Quotas[?contains(QuotaName, 'Spot')].[Value, QuotaName]\" --output text"
_AFTER_A_DOWN = "; for another zone, or capacity: on-demand, end the cluster first"


def spot_help(result: RunResult, intent: Intent, *, source: str, is_new: bool) -> Help | None:
    """What helps against a refusal of spot machines; None for other machines, and for every other refusal.

    `is_new`: no node of the cluster ran before; where nodes run, their zone, type and capacity are decided already.
    The codes: EC2 API, "Error codes for the Amazon EC2 API" (2026-11-22).
    """
    config = intent.config
    code = next((refusal.code for refusal in result.refusals if refusal.code is not None), None)
    if config.market != "spot" or code is None:
        return None
    machine = config.instance_type_name(intent.catalog)
    if code == "InsufficientInstanceCapacity":
        otherwise = ", or write another zone, another type, or capacity: on-demand" if is_new else _AFTER_A_DOWN
        return Help(
            sentence=f"AWS does not have that many spare {machine} there now, which may change by the hour: try again"
            f"{otherwise}.",
            hint=None,
        )
    if code == "SpotMaxPriceTooLow":
        return _too_low(intent, machine, source=source)
    if code == "MaxSpotInstanceCountExceeded":
        return Help(
            sentence="Spot machines have quotas of their own, in vCPUs for each family of types; AWS raises them on "
            "request.",
            hint=f"aws service-quotas list-service-quotas --service-code ec2 --region {config.region} {_QUOTAS}",
        )
    if code == "AuthFailure.ServiceLinkedRoleCreationNotPermitted":
        return Help(
            sentence="The first spot machine of an account needs a role of AWS's own, and you may not create it: "
            "somebody who may has to do it once.",
            hint=ROLE,
        )
    return None


def _too_low(intent: Intent, machine: str, *, source: str) -> Help:
    """What helps if the maximum price is too low: a person set it, or it is an on-demand price older than AWS's."""
    config = intent.config
    cap = config.caps.price_usd_per_hour
    on_demand = intent.catalog.price_usd_per_hour(machine, config.region)
    if cap is not None and (on_demand is None or cap <= on_demand):
        return Help(
            sentence=f"The maximum is caps.price_usd_per_hour in {source}: raise it, or wait until it costs less.",
            hint=edit(source),
        )
    dated = intent.catalog.price_dated(machine, config.region)
    return Help(
        sentence=f"The maximum is the price on demand of {dated}, which AWS may have raised.",
        hint=refresh_command(config.region, machine),
    )


CODES = ("VcpuLimitExceeded", "InstanceLimitExceeded")
"""EC2 API, "Error codes for the Amazon EC2 API" (2026-11-22)."""


def quota_help(result: RunResult, intent: Intent, *, is_rehearsal: bool) -> Help | None:
    """What helps if the account's quota of on-demand vCPUs is used up; None for every other refusal."""
    config = intent.config
    codes = {refusal.code for refusal in result.refusals}
    row = config.instance_row(intent.catalog)
    if config.market != "on-demand" or row is None or codes.isdisjoint(CODES):
        return None
    vcpus = config.nodes * row.vcpus
    return Help(
        sentence=f"On-demand machines have quotas in vCPUs, and reserved places count: {config.nodes} × "
        f"{row.name} are {vcpus:,}, beside what else runs in the account; AWS raises a quota on request.",
        hint=raise_quota("vcpus", quota_code(row.family), vcpus, region=config.region, is_rehearsal=is_rehearsal),
    )


@dataclass(frozen=True, kw_only=True)
class Help:
    """Advice that AWS's own sentence does not give."""

    sentence: str
    hint: str | None
    """The command that helps; None: the same command may succeed later."""
