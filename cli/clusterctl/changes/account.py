"""Whose cluster it is: a change made with another account's credentials would take living machines for gone."""

from __future__ import annotations

import re

from clusterctl.cloud.other_account import refuse_account
from clusterctl.engine.state import INSTANCE_TYPE, RESERVATION_TYPE, StackState

VPC_TYPE = "aws:ec2/vpc:Vpc"
_ARN = re.compile(r"arn:[^:]+:[^:]*:[^:]*:(?P<account>\d{12}):")


def account_of(state: StackState) -> str | None:
    """The account number that the state's network belongs to; None before there is one.

    A `down` that was cut off may have left no network, and what bills: then the ARN of that tells.
    """
    vpc = state.find(VPC_TYPE)
    if vpc is not None and vpc.outputs.get("ownerId"):
        return str(vpc.outputs["ownerId"])
    bills = (*state.of_type(RESERVATION_TYPE), *state.of_type(INSTANCE_TYPE))
    found = (_ARN.match(str(one.outputs.get("arn") or "")) for one in bills)
    return next((match["account"] for match in found if match is not None), None)


def refuse_other_account(state: StackState, account: str) -> None:
    """Raises CloudError when the credentials are of another account than the one the cluster is in."""
    refuse_account(account_of(state), account, undone=": nothing was changed")
